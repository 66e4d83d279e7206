import{$html as $$html,$markup as $$markup,$live as $$live}from"bine:runtime";const $$m0=$$markup(["<section","","><h2>","</h2>","</section>"],["ssection class","aclass","t","t"]),$$m1=$$markup(["<!DOCTYPE html><html lang=\"en\"><head><title>Rows &amp; ","</title>","</head><body>","","<table><tbody>","</tbody></table>","","","<textarea name=\"text\" rows=\"3\">\n","</textarea><script>","</script></body></html>"],["u","h","t","t","t","t","t","t","u","x"]),$$m2=$$markup(["<b>markup</b>"],[]),$$m3=$$markup(["<p>one</p> two"],[]),$$m4=$$markup(["<tr","><td><a",">","</a></td></tr>"],["aid","lhref","t"]),$$m5=$$markup(["<p>","</p>"],["t"]),$$m6=$$markup(["",""],["t"]),$$m7=$$markup(["",""],["t"]);import { raw, Live as Region } from "bine";
const $html = "a name that generated code must not take";

const Card =     ({ title, children, ...rest }                              ) => (
  $$html($$m0,rest,["card", null],
         title       ,
     children)
            
);

export const Page = async ({ rows, html }     ) => (
  $$html($$m1,

                         rows.length,



       Card({"title":"A \"card\"","wide":true,...rows[0],children:
         rows.length}),

       Card({"title":$$html($$m2),children:$$html($$m3)}),


           rows.map((row) => (
            $$html($$m4,row.id,

                         `/rows/${row.id}`,row.name          )

                 
          )),


      await $$live("17a6694b7c96c2f0",async()=>$$html($$m5,
            await rows.count())),

      $$live("f9699df3e3a258e5",()=>$$html($$m6,rows[0])),
      $$live("da6ed6ead8b30ec4",()=>$$html($$m7,rows[0])),
                                      html,
               raw(html))

         
);

/*
Facts {
    exports: [
        Export {
            name: "Page",
            kind: Value,
            position: Position {
                line: 11,
                column: 14,
            },
        },
    ],
    services: [],
    tables: [],
    events: [],
    channels: [],
    imports: [
        Import {
            specifier: "bine",
            kind: Bine,
            names: [
                "raw",
                "Live",
            ],
            position: Position {
                line: 1,
                column: 37,
            },
        },
    ],
    service_calls: [],
    regions: [
        Region {
            hash: "17a6694b7c96c2f0",
            source_hash: "17a6694b7c96c2f0",
            position: Position {
                line: 33,
                column: 7,
            },
        },
        Region {
            hash: "f9699df3e3a258e5",
            source_hash: "f9699df3e3a258e5",
            position: Position {
                line: 36,
                column: 7,
            },
        },
        Region {
            hash: "da6ed6ead8b30ec4",
            source_hash: "f9699df3e3a258e5",
            position: Position {
                line: 37,
                column: 7,
            },
        },
    ],
    changed_variables: [],
}
*/
