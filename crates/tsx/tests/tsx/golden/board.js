import{$html as $html,$markup as $markup,$live as $live,$row as $row,$rows as $rows}from"bine:runtime";const $m0=$markup(["<main><h1>","</h1>","<form","><input type=\"hidden\" name=\"forum\""," /><input name=\"body\" required=\"\" maxlength=\"500\" /> <button>Post</button></form></main>"],["t","t","paction","avalue"]),$m1=$markup(["<ul>","</ul>"],["t"]),$m2=$markup(["<li",">"," <small>by ","</small></li>"],["aid","t","t"]),$r0=$row($m2,["id","body","author"]);import { table, text, now, service, page, Live } from "bine";
const messages = table("messages", { forum: text().index(), body: text().max(500), author: text().index(), at: now() });

export const post = service((ctx, { forum, body }                                 ) =>
  messages.insert({ forum, body, author: ctx.user.name }));

export default page((ctx, { forum = "Ubuntu" }) => (
  $html($m0,
         forum,
    $live("988488f31308d37b",()=>$html($m1,
           $rows($r0,messages.by("forum", forum),"newest",50,(m) => $html($m2,m.id,m.body,m.author)))),

                  post,
                                               forum)


         
));

/*
Facts {
    exports: [
        Export {
            name: "post",
            kind: Service,
            position: Position {
                line: 4,
                column: 14,
            },
        },
        Export {
            name: "default",
            kind: Page,
            position: Position {
                line: 7,
                column: 1,
            },
        },
    ],
    services: [
        Service {
            name: "post",
            argument: Object(
                [
                    Field {
                        name: "forum",
                        is_optional: false,
                        shape: String,
                    },
                    Field {
                        name: "body",
                        is_optional: false,
                        shape: String,
                    },
                ],
            ),
            position: Position {
                line: 4,
                column: 14,
            },
        },
    ],
    tables: [
        Table {
            name: "messages",
            variable: "messages",
            position: Position {
                line: 2,
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
                "table",
                "text",
                "now",
                "service",
                "page",
                "Live",
            ],
            position: Position {
                line: 1,
                column: 55,
            },
        },
    ],
    service_calls: [],
    regions: [
        Region {
            hash: "988488f31308d37b",
            source_hash: "988488f31308d37b",
            position: Position {
                line: 10,
                column: 5,
            },
        },
    ],
    changed_variables: [],
}
*/
