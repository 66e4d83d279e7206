//! The examples of the guide, compiled and run.

use bine_script::Value;

use super::{App, text};

const GUIDE: &str = include_str!("../../../../../../docs/guide/scripts-tables.md");

#[test]
fn runs_the_examples_of_the_guide() {
    let examples = GUIDE.split("```tsx\n").skip(1);
    let examples = examples.filter_map(|rest| rest.split_once("```")).map(|(example, _)| {
        let module = bine_tsx::compile("index.tsx", example);
        App::new(&module.unwrap_or_else(|errors| panic!("{errors:?}")).code)
    });
    let examples: Vec<App> = examples.collect();
    let [board, visits, events, users] = &examples[..] else { panic!("{}", examples.len()) };

    let id = board.change("post", &["Ada", "Ubuntu", "1 < 2"].map(text));
    let Ok(Value::Html(list)) = board.page("list", &[text("Ubuntu")]).result else { panic!() };
    assert_eq!(list.text(), format!("<ul><li id=\"{id}\">1 &lt; 2 by Ada</li></ul>"));

    let schemas = visits.tables.schemas().unwrap();
    assert_eq!(schemas[1].indexes.len(), 2);
    assert_eq!(events.page("today", &[text("here")]).result, Ok(Value::Array(Vec::new())));
    let page = events.page("turn", &[]).result.unwrap();
    assert_eq!(page.property("next"), Some(&Value::Null));
    assert_eq!(users.change("join", &[text("Ada")]), users.change("join", &[text("Ada")]));
}
