import{$html as $html,$markup as $markup,$live as $live}from"bine:runtime";const $m0=$markup(["<li"," class=\"row\" data-on=\"click: run $browser-url 0; dragstart: run $browser-url 1 now; input: run $browser-url 2\"",">","<button type=\"button\" data-on=\"click: run $browser-url 3\"",">Down</button><button type=\"button\" data-on=\"click: run $browser-url 4\"",">Who</button></li>"],["aid","v28:26 entry.id","t","v39:67 entry.id\n39:81 index\n39:114 forum","v42:50 entry.author.name\n42:97 forum"]),$m1=$markup(["<form data-on=\"done: run $browser-url 5; submit: run $browser-url 6 now\"><input name=\"body\" aria-label=\"Body\" data-on=\"keydown: run $browser-url 7\""," /></form><ul>","</ul><p>","</p>"],["v51:107 mine","t","t"]);import { Live, page, service, table, text } from "bine";
import { close } from "bine:services";
import { post } from "./forums.ts";
;                                                 
;                                             

;                                                                   
const entries = table("entries", { body: text(), author: text() });
const LIMIT = 20;
const COLORS                         = { warning: "red", note: ["bl", "ue"].join("") };

/** Shared by both sides. */
export function problem(body        )                {
  return body.length > LIMIT ? `${total(body.length)} too long` : null;
}
const total = (length        )         => Math.max(0, length - LIMIT);

export const remove = service((ctx, { id }                ) => entries.remove(id));
const move = service((ctx, { id, to }                            ) => id + to);
export { move as shift };

const Row = ({ entry, index, forum = "a" }                                                 ) => (
  $html($m0,
        entry.id,[entry?.id],













     entry.body,[entry?.id,index,forum],[entry?.author?.name,forum])




       
);

export default page((ctx) => {
  const mine = { a: [1, 2], name: ctx.session.name };
  return (
    $live("d119e02f2541a629",()=>$html($m1,[mine],



           entries.newest(LIMIT).map((entry, index) => Row({"entry":{ ...entry, author: { name: entry.author } },"index":index,})),
          problem("a")))
           
  );
});

/*
Facts {
    exports: [
        Export {
            name: "problem",
            kind: Value,
            position: Position {
                line: 13,
                column: 17,
            },
        },
        Export {
            name: "remove",
            kind: Service,
            position: Position {
                line: 18,
                column: 14,
            },
        },
        Export {
            name: "shift",
            kind: Service,
            position: Position {
                line: 20,
                column: 10,
            },
        },
        Export {
            name: "default",
            kind: Page,
            position: Position {
                line: 46,
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
                line: 18,
                column: 14,
            },
        },
        Service {
            name: "shift",
            argument: Object(
                [
                    Field {
                        name: "id",
                        is_optional: false,
                        shape: String,
                    },
                    Field {
                        name: "to",
                        is_optional: false,
                        shape: Number,
                    },
                ],
            ),
            position: Position {
                line: 19,
                column: 7,
            },
        },
    ],
    tables: [
        Table {
            name: "entries",
            variable: "entries",
            position: Position {
                line: 8,
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
                "page",
                "service",
                "table",
                "text",
            ],
            position: Position {
                line: 1,
                column: 50,
            },
        },
        Import {
            specifier: "bine:services",
            kind: Services,
            names: [
                "close",
            ],
            position: Position {
                line: 2,
                column: 23,
            },
        },
        Import {
            specifier: "./forums.ts",
            kind: Relative,
            names: [
                "post",
            ],
            position: Position {
                line: 3,
                column: 22,
            },
        },
    ],
    service_calls: [
        ServiceCall {
            service: "close",
            position: Position {
                line: 50,
                column: 27,
            },
            arguments: Some(
                CallArguments {
                    named: [],
                    is_open: false,
                },
            ),
        },
    ],
    regions: [
        Region {
            hash: "d119e02f2541a629",
            source_hash: "d119e02f2541a629",
            position: Position {
                line: 49,
                column: 5,
            },
        },
    ],
    changed_variables: [],
}
*/

// In the browser:
const LIMIT = 20;
const COLORS                         = { warning: "red", note: ["bl", "ue"].join("") };
function problem(body        )                {
  return body.length > LIMIT ? `${total(body.length)} too long` : null;
}
const total = (length        )         => Math.max(0, length - LIMIT);
export default[
$captured=>(async (event            ) => {
      const button = event.target               ;
      await remove({ id: $captured[0] });
      button.remove();
    }),
$captured=>(function (event) {
      event.dataTransfer .setData("text", $captured[0]);
      flash(this_element(event), COLORS["note"]          );
      function this_element(event       ) { return event.currentTarget; }
    }),
$captured=>(({ target }) => { (target                    ).setCustomValidity(problem((target                    ).value) ?? ""); }),
$captured=>(async () => { await move({ id: $captured[0], to: $captured[1] + 1 }); sounds.play(MAX, { forum:$captured[2] }); }),
$captured=>(() => { alert($captured[0] + $captured[0].length + $captured[1]); }),
$captured=>(() => close({})),
$captured=>((event) => { if (!confirm("?")) event.preventDefault(); }),
$captured=>((event) => event.key === "Escape" && post({ text: $captured[0].name, mine:$captured[0] }))
];

/*
[
    BrowserImport {
        local: "remove",
        name: "remove",
        source: Own,
        position: Position {
            line: 28,
            column: 13,
        },
    },
    BrowserImport {
        local: "flash",
        name: "flash",
        source: Browser(
            "./effects.browser.ts",
        ),
        position: Position {
            line: 33,
            column: 7,
        },
    },
    BrowserImport {
        local: "move",
        name: "shift",
        source: Own,
        position: Position {
            line: 39,
            column: 56,
        },
    },
    BrowserImport {
        local: "sounds",
        name: "*",
        source: Browser(
            "./sounds.browser.ts",
        ),
        position: Position {
            line: 39,
            column: 95,
        },
    },
    BrowserImport {
        local: "MAX",
        name: "MAX",
        source: Browser(
            "./effects.browser.ts",
        ),
        position: Position {
            line: 39,
            column: 107,
        },
    },
    BrowserImport {
        local: "close",
        name: "close",
        source: Rust,
        position: Position {
            line: 50,
            column: 27,
        },
    },
    BrowserImport {
        local: "post",
        name: "post",
        source: Server(
            "./forums.ts",
        ),
        position: Position {
            line: 51,
            column: 94,
        },
    },
]
*/
