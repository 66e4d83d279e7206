//! The services of `service-calls` in Rust, with an application in TSX whose services they call.

use bine::prelude::*;
use serde_json::json;

#[service("/add")]
fn add(left: u32, right: u32) -> Result<u32, Error> {
    left.checked_add(right).ok_or_else(|| Error::bad_request("The sum is too large."))
}

/// Calls the service in TSX, in the transaction of this one.
#[service("/sum-by-script")]
fn sum_by_script(call: &mut Call, count: u32) -> Result<u32, Error> {
    (1..=count).try_fold(0, |left, right| {
        call.call_service("/calls/plus", &json!({ "left": left, "right": right }))
    })
}

/// Calls the service in TSX outside of a transaction.
#[service("/sum-by-script-outside")]
async fn sum_by_script_outside(caller: Caller, count: u32) -> Result<u32, Error> {
    let mut sum: u32 = 0;
    for right in 1..=count {
        let arguments = json!({ "left": sum, "right": right });
        sum = caller.call_service("/calls/plus", &arguments).await?;
    }
    Ok(sum)
}

fn main() -> Exit {
    let folder = std::env::var("CALLS").unwrap_or_else(|_| "bench/programs".to_owned());
    App::new()
        .scripts(folder)
        .service(add)
        .service(sum_by_script)
        .service(sum_by_script_outside)
        .run()
}
