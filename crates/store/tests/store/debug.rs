//! Tests that debug output, which ends up in logs, names tables and numbers and no content of rows.

use bine_store::{Error, Store};

use crate::tables::{Message, User, options};

#[test]
fn debug_output_has_no_content_of_rows() {
    let store = Store::in_memory(options()).unwrap();
    store.insert(User::new("secret", Some(7))).wait().unwrap();
    let now = store.read();
    let mut transaction = store.begin();
    for name in ["secret too", "secret as well"] {
        transaction.insert(User::new(name, None)).unwrap();
    }
    let of_transaction = format!("{transaction:?}");
    let pending = store.commit(transaction).unwrap();
    let change = store.change(|change| change.insert(User::new("secret change", None)).map(drop));
    let users = now.select::<User>().filter(|user| user.name == "secret").limit(3);
    let of_change = format!("{change:?}");
    drop::<Result<(), Error>>(change.wait());
    for (output, expected) in [
        (format!("{store:?}"), r#"["user", "message", "receipt"]"#),
        (of_transaction, "Transaction { writes: 2, .. }"),
        (format!("{pending:?}"), "Pending { outcome: "),
        (of_change, "Change { is_under_way: false, .. }"),
        (format!("{users:?}"), "filters: 1, order: None, is_descending: false, limit: Some(3), .."),
        (format!("{:?}", now.all::<User>()), "Found { table: 0, .. }"),
        (format!("{:?}", now.all::<Message>()), "Found { table: 1, .. }"),
        (
            format!("{:?}", now.select::<Message>().group_by(Message::COLUMN_SCORE)),
            "Groups { column: 3, .. }",
        ),
        (
            format!("{:?}", now.select::<Message>().with(|message: &Message| message.author)),
            "Joined { select: Select { conditions: [], ",
        ),
        (format!("{:?}", now.table_named("message").unwrap()), r#"TableView("message")"#),
    ] {
        assert!(output.contains(expected), "no {expected:?} in {output}");
        assert!(!output.contains("secret"), "{output}");
    }
}
