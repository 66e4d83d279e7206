import{$html as $html,$markup as $markup,$live as $live,$handler as $handler}from"bine:runtime";const $m0=$markup(["<li","",""," data-on=\"click: run; keydown: run $browser-url 1 now; wheel: run\">","</li>"],["adata-on-click","adata-on-wheel","atitle","t"]),$m1=$markup(["<main data-on=\"appear: run $browser-url 2\"","><p",""," data-on=\"click: run; mousedown: run; mouseup: run $browser-url 3 now; keyup: run $browser-url 4; focus: run $browser-url 5\">","</p>","</main>"],["v32:20 room","adata-on-click","adata-on-mousedown","t","t"]),$m2=$markup(["<ul>","</ul><p"," data-on=\"click: run\">","</p>"],["t","adata-on-click","t"]),$url="$browser-url";import { Live, browser, channel, event, navigate, page, service, table, text } from "bine";
import { news as shared } from "./news.ts";
;                                            

const tasks = table("tasks", { title: text() });
const bell = event("bell");
const rooms = channel("rooms/{room}", { follow: "anyone" });
const log = channel("log");
export const remove = service((ctx, { id }                ) => tasks.remove(id));

/** A handler by its name. */
function stop(event       )       {
  event.preventDefault();
}
const count = (event       ) => { (event.currentTarget               ).textContent += "!"; };
/** A handler of the module. */
const close = browser($url,0,0,[],"");

;                                          
const Row = ({ title, onpick, onwheel }                                                  ) => (
  $html($m0,$handler(onpick),$handler(onwheel ?? null),title,title)
);

export default page((ctx, { room = "hall" }) => {
  const mine = { pick: close };
  return (
    $html($m1,[room],$handler(










                  close),$handler(mine.pick),room,
      $live("99be4144a2c60b67",()=>$html($m2,
             tasks.all().map((task) => (
          Row({"title":
                   task.title,"onpick":
                    browser($url,6,1,[task?.id],"45:34 task.id"


             ),})
            
        )),$handler(
                    ctx.user ? browser($url,7,0,[room],"49:65 room") : null),room)))

           
  );
});

/*
Facts {
    exports: [
        Export {
            name: "remove",
            kind: Service,
            position: Position {
                line: 9,
                column: 14,
            },
        },
        Export {
            name: "default",
            kind: Page,
            position: Position {
                line: 24,
                column: 1,
            },
        },
    ],
    services: [
        Service {
            name: "remove",
            argument: Object(
                [
                    Field {
                        name: "id",
                        is_optional: false,
                        shape: String,
                    },
                ],
            ),
            position: Position {
                line: 9,
                column: 14,
            },
        },
    ],
    tables: [
        Table {
            name: "tasks",
            variable: "tasks",
            position: Position {
                line: 5,
                column: 7,
            },
        },
    ],
    events: [],
    channels: [],
    imports: [
        Import {
            specifier: "bine",
            kind: Bine,
            names: [
                "Live",
                "browser",
                "channel",
                "event",
                "navigate",
                "page",
                "service",
                "table",
                "text",
            ],
            position: Position {
                line: 1,
                column: 85,
            },
        },
        Import {
            specifier: "./news.ts",
            kind: Relative,
            names: [
                "news",
            ],
            position: Position {
                line: 2,
                column: 32,
            },
        },
    ],
    service_calls: [],
    regions: [
        Region {
            hash: "99be4144a2c60b67",
            source_hash: "99be4144a2c60b67",
            position: Position {
                line: 39,
                column: 7,
            },
        },
    ],
    changed_variables: [],
}
*/

// In the browser:
function stop(event       )       {
  event.preventDefault();
}
const count = (event       ) => { (event.currentTarget               ).textContent += "!"; };
export default[
$captured=>(() => navigate("/")),
$captured=>((event) => stop(event)),
$captured=>(() => {
        const stops = [
          bell.on((data) => flash(data          )),
          shared.follow(({ data }) => flash(data)),
          rooms.at($captured[0]).follow(({ data }) => flash(data), { after: "earliest" }),
          log.follow(() => void remove({ id: "1" })),
        ];
        return () => stops.forEach((stop) => stop());
      }),
$captured=>(stop),
$captured=>(count),
$captured=>(flash),
$captured=>(async (event            ) => {
              event.stopPropagation();
              await remove({ id: $captured[0] });
            }),
$captured=>(() => navigate(`/rooms/${$captured[0]}`))
];

/*
[
    BrowserImport {
        local: "navigate",
        name: "navigate",
        source: Script,
        position: Position {
            line: 17,
            column: 29,
        },
    },
    BrowserImport {
        local: "bell",
        name: "bell",
        source: Event,
        position: Position {
            line: 30,
            column: 11,
        },
    },
    BrowserImport {
        local: "flash",
        name: "flash",
        source: Browser(
            "./effects.browser.ts",
        ),
        position: Position {
            line: 30,
            column: 29,
        },
    },
    BrowserImport {
        local: "shared",
        name: "news",
        source: Server(
            "./news.ts",
        ),
        position: Position {
            line: 31,
            column: 11,
        },
    },
    BrowserImport {
        local: "rooms",
        name: "rooms/{room}",
        source: Channel,
        position: Position {
            line: 32,
            column: 11,
        },
    },
    BrowserImport {
        local: "log",
        name: "log",
        source: Channel,
        position: Position {
            line: 33,
            column: 11,
        },
    },
    BrowserImport {
        local: "remove",
        name: "remove",
        source: Own,
        position: Position {
            line: 33,
            column: 33,
        },
    },
]
*/
