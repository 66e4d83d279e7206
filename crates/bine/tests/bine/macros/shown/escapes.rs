//! The same characters in constants and in values.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let hostile = "\"><script>alert('1 & 2')</script>";
    html! {
        <p title={hostile}>{hostile}</p>
        <p title="\"><script>alert('1 & 2')</script>">"\"><script>alert('1 & 2')</script>"</p>
        <p title={"&amp;"}>{"&amp;"}"&amp;"</p>
        <textarea>{"</textarea><b>"}</textarea>
    }
}

/// Long because it lists all ASCII characters.
pub(super) fn every_ascii_character() -> impl Page {
    html! {
        <p title="\x00">"\x00"</p>
        <p title="\x01">"\x01"</p>
        <p title="\x02">"\x02"</p>
        <p title="\x03">"\x03"</p>
        <p title="\x04">"\x04"</p>
        <p title="\x05">"\x05"</p>
        <p title="\x06">"\x06"</p>
        <p title="\x07">"\x07"</p>
        <p title="\x08">"\x08"</p>
        <p title="\x09">"\x09"</p>
        <p title="\x0a">"\x0a"</p>
        <p title="\x0b">"\x0b"</p>
        <p title="\x0c">"\x0c"</p>
        <p title="\x0d">"\x0d"</p>
        <p title="\x0e">"\x0e"</p>
        <p title="\x0f">"\x0f"</p>
        <p title="\x10">"\x10"</p>
        <p title="\x11">"\x11"</p>
        <p title="\x12">"\x12"</p>
        <p title="\x13">"\x13"</p>
        <p title="\x14">"\x14"</p>
        <p title="\x15">"\x15"</p>
        <p title="\x16">"\x16"</p>
        <p title="\x17">"\x17"</p>
        <p title="\x18">"\x18"</p>
        <p title="\x19">"\x19"</p>
        <p title="\x1a">"\x1a"</p>
        <p title="\x1b">"\x1b"</p>
        <p title="\x1c">"\x1c"</p>
        <p title="\x1d">"\x1d"</p>
        <p title="\x1e">"\x1e"</p>
        <p title="\x1f">"\x1f"</p>
        <p title=" ">" "</p>
        <p title="!">"!"</p>
        <p title="\"">"\""</p>
        <p title="#">"#"</p>
        <p title="$">"$"</p>
        <p title="%">"%"</p>
        <p title="&">"&"</p>
        <p title="'">"'"</p>
        <p title="(">"("</p>
        <p title=")">")"</p>
        <p title="*">"*"</p>
        <p title="+">"+"</p>
        <p title=",">","</p>
        <p title="-">"-"</p>
        <p title=".">"."</p>
        <p title="/">"/"</p>
        <p title="0">"0"</p>
        <p title="1">"1"</p>
        <p title="2">"2"</p>
        <p title="3">"3"</p>
        <p title="4">"4"</p>
        <p title="5">"5"</p>
        <p title="6">"6"</p>
        <p title="7">"7"</p>
        <p title="8">"8"</p>
        <p title="9">"9"</p>
        <p title=":">":"</p>
        <p title=";">";"</p>
        <p title="<">"<"</p>
        <p title="=">"="</p>
        <p title=">">">"</p>
        <p title="?">"?"</p>
        <p title="@">"@"</p>
        <p title="A">"A"</p>
        <p title="B">"B"</p>
        <p title="C">"C"</p>
        <p title="D">"D"</p>
        <p title="E">"E"</p>
        <p title="F">"F"</p>
        <p title="G">"G"</p>
        <p title="H">"H"</p>
        <p title="I">"I"</p>
        <p title="J">"J"</p>
        <p title="K">"K"</p>
        <p title="L">"L"</p>
        <p title="M">"M"</p>
        <p title="N">"N"</p>
        <p title="O">"O"</p>
        <p title="P">"P"</p>
        <p title="Q">"Q"</p>
        <p title="R">"R"</p>
        <p title="S">"S"</p>
        <p title="T">"T"</p>
        <p title="U">"U"</p>
        <p title="V">"V"</p>
        <p title="W">"W"</p>
        <p title="X">"X"</p>
        <p title="Y">"Y"</p>
        <p title="Z">"Z"</p>
        <p title="[">"["</p>
        <p title="\\">"\\"</p>
        <p title="]">"]"</p>
        <p title="^">"^"</p>
        <p title="_">"_"</p>
        <p title="`">"`"</p>
        <p title="a">"a"</p>
        <p title="b">"b"</p>
        <p title="c">"c"</p>
        <p title="d">"d"</p>
        <p title="e">"e"</p>
        <p title="f">"f"</p>
        <p title="g">"g"</p>
        <p title="h">"h"</p>
        <p title="i">"i"</p>
        <p title="j">"j"</p>
        <p title="k">"k"</p>
        <p title="l">"l"</p>
        <p title="m">"m"</p>
        <p title="n">"n"</p>
        <p title="o">"o"</p>
        <p title="p">"p"</p>
        <p title="q">"q"</p>
        <p title="r">"r"</p>
        <p title="s">"s"</p>
        <p title="t">"t"</p>
        <p title="u">"u"</p>
        <p title="v">"v"</p>
        <p title="w">"w"</p>
        <p title="x">"x"</p>
        <p title="y">"y"</p>
        <p title="z">"z"</p>
        <p title="{">"{"</p>
        <p title="|">"|"</p>
        <p title="}">"}"</p>
        <p title="~">"~"</p>
        <p title="\x7f">"\x7f"</p>
    }
}
