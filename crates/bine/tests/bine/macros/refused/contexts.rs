//! Rejected: values where no escaping is safe.

use bine::{Page, html};

fn an_event_handler(name: &str) -> impl Page {
    html!(<button onclick={name}>"press"</button>)
}

fn a_style(width: u32) -> impl Page {
    html!(<p style={format_args!("width: {width}%")}>one</p>)
}

fn a_page_in_an_attribute(page: String) -> impl Page {
    html!(<iframe srcdoc={page}></iframe>)
}

fn a_number_in_a_script(count: u32) -> impl Page {
    html!(<script>"let count = "{count}";"</script>)
}

fn no_address(parts: (u32, u32)) -> impl Page {
    html!(<a href={parts}>one</a>)
}

fn main() {}
