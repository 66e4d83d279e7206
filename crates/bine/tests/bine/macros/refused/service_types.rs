//! Rejected: arguments of services that neither JSON nor a form contains.

use bine::prelude::*;

struct Row;

#[service]
fn of_a_row(call: &mut Call, name: Text, row: Row) -> Result<(), Error> {
    drop((call, name, row));
    Ok(())
}

#[service(safe)]
fn of_rows(first: Option<Row>, second: Vec<Row>) {
    drop((first, second));
}

#[service]
async fn of_a_store(caller: Caller, store: Store) {
    drop((caller, store));
}

#[service]
fn of_a_reference(call: &mut Call, name: &str) {
    drop((call, name));
}

#[service]
fn of_references(names: Vec<&'static str>) {
    drop(names);
}

fn main() {
    let app = App::new().service(of_a_row).service(of_rows).service(of_a_store);
    drop(app.service(of_a_reference).service(of_references));
}
