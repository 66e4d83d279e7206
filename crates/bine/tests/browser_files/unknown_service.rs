//! A file that imports a service which the program does not have.

use std::panic::catch_unwind;

use bine::prelude::*;
use bine::test::Site;

browser_file!(mod lost = "lost.browser.ts");

#[page("/lost")]
async fn page_of_lost() -> impl Page {
    html!(<p data-on={lost::add.on("click")}>a</p>)
}

#[service]
async fn put(item: u32) -> Result<u32, Error> {
    Ok(item)
}

#[test]
fn rejects_a_program_without_the_service() {
    let start = || Site::new(App::new().page(page_of_lost).service(put));
    let Err(panic) = catch_unwind(start) else { panic!("the program starts") };
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(
        message.ends_with("tests/browser_files/lost.browser.ts:2:22: the program has no service `lost`; did you mean `put`?"),
        "{message}"
    );
}
