//! Rejected: a type that is not a table where one is required.

use bine::store::{Options, Store};

struct User {
    name: String,
}

fn open() -> Result<Store, String> {
    let store = Store::in_memory(Options::new().table::<User>())?;
    println!("{}", store.read().count::<User>());
    let user = User { name: "anna".into() };
    store.insert(user).wait().unwrap();
    Ok(store)
}

fn main() {}
