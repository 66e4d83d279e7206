import{$html as $html,$markup as $markup,$shape as $shape,$tree as $tree}from"bine:runtime";const $m0=$shape(["<nav",".class wide",".hidden ","<a",".href /",".class home","'Home & more",">","<br",">",">"]),$m1=$markup(["<b>","</b>"],["t"]),$m2=$markup(["<li",">","</li>"],["atitle","t"]),$m3=$shape(["!","<html",".lang en","<head","<title","u","' names",">","<style","\"p { color: green }",">","<script","x",">",">","<body","t","<a","lhref",".class b","sa href class","'d",">","<ul","t","t",">","<pre","t",">","<p","'Rated ","t",">",">",">"]),$m4=$shape(["<li","aid","t",">"]),$m5=$shape(["<i","'y",">","' z"]),$m6=$shape(["'a","<p","'b",">"]),$m7=$shape(["<i","'c",">"]),$m8=$markup(["<p>","</p>"],["t"]),$m9=$shape(["<b","'d",">"]);import { element, node, raw, tree } from "bine";

export const menu = tree(
  $tree($m0)


        ,
);

const Stars = node(({ count }                   ) => $html($m1,count));
const Item = ({ name, children }                                  ) => $html($m2,name,children);

export const page = (names          , address        ) => tree(
  $tree($m3,

              names.length,

               raw("let a = 1;"),


       menu,
               address,{ title: "c" },

         names.map((name) => (
          $tree($m4,name,name)
        )),
         names.length > 1 && Item({"name":"x",children:$tree($m5)}),

            names[0],
                Stars({"count":3,}))

         
);

export const parts = () => [tree($tree($m6)), element("h2", {}, tree($tree($m7))), $html($m8,tree($tree($m9)))];

/*
Facts {
    exports: [
        Export {
            name: "menu",
            kind: Value,
            position: Position {
                line: 3,
                column: 14,
            },
        },
        Export {
            name: "page",
            kind: Value,
            position: Position {
                line: 13,
                column: 14,
            },
        },
        Export {
            name: "parts",
            kind: Value,
            position: Position {
                line: 35,
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
                "element",
                "node",
                "raw",
                "tree",
            ],
            position: Position {
                line: 1,
                column: 42,
            },
        },
    ],
    service_calls: [],
    regions: [],
    changed_variables: [],
}
*/
