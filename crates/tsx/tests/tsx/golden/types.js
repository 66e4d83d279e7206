;                                
import {            page as show, table } from "bine";
import rooms, * as all from "./rooms.ts";
;                                    
export { one,          } from "./rows.ts";
export * from "./rows.ts";

;                        
;                  
                 
 
export const messages = table("messages", {})                  ;
let count         = 0;
const cache                   = new Map             ();
const constant = [1, 2];
count += 1;

;                                          
function first(list       , options          ) {
  count++;
  cache.set("a", list[0] );
  return list[0]              ;
}

         class Base    extends Array                           {
  ;       static          limit          = 1
  ;                   
  ;         ["name"]         = "a"
  value;  
  ;                  
  ;        toString(               depth         )         { return super.toString() }
}

const arrow = async     (value   , ...rest                
   
 ) => value;

const text = count           ;         
const next = (first)([text])

export { count, Base as default };

/*
Facts {
    exports: [
        Export {
            name: "one",
            kind: Value,
            position: Position {
                line: 5,
                column: 10,
            },
        },
        Export {
            name: "*",
            kind: All,
            position: Position {
                line: 6,
                column: 1,
            },
        },
        Export {
            name: "messages",
            kind: Table,
            position: Position {
                line: 12,
                column: 14,
            },
        },
        Export {
            name: "count",
            kind: Value,
            position: Position {
                line: 41,
                column: 10,
            },
        },
        Export {
            name: "default",
            kind: Value,
            position: Position {
                line: 41,
                column: 17,
            },
        },
    ],
    services: [],
    tables: [
        Table {
            name: "messages",
            variable: "messages",
            position: Position {
                line: 12,
                column: 14,
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
                "page",
                "table",
            ],
            position: Position {
                line: 2,
                column: 48,
            },
        },
        Import {
            specifier: "./rooms.ts",
            kind: Relative,
            names: [
                "default",
                "*",
            ],
            position: Position {
                line: 3,
                column: 29,
            },
        },
        Import {
            specifier: "./rows.ts",
            kind: Relative,
            names: [
                "one",
            ],
            position: Position {
                line: 5,
                column: 31,
            },
        },
        Import {
            specifier: "./rows.ts",
            kind: Relative,
            names: [
                "*",
            ],
            position: Position {
                line: 6,
                column: 15,
            },
        },
    ],
    service_calls: [],
    regions: [],
    changed_variables: [
        ChangedVariable {
            name: "count",
            declared: Position {
                line: 13,
                column: 5,
            },
            changed: Position {
                line: 20,
                column: 3,
            },
        },
        ChangedVariable {
            name: "cache",
            declared: Position {
                line: 14,
                column: 7,
            },
            changed: Position {
                line: 21,
                column: 3,
            },
        },
    ],
}
*/
