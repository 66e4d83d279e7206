//! The built-in module of trees: functions of the host, and the methods of trees over them.

use std::rc::Rc;

use rquickjs::Value;

use crate::host_function::NativeExport;
use crate::quickjs::{Arguments, Callback, Thrown};
use crate::state::State;
use crate::tree::{FUNCTIONS, Native};

/// The module with the words and methods of trees.
pub(crate) const WORDS: &str = "bine:internal/tree";

/// Its JavaScript.
pub(crate) const WORDS_SOURCE: &str = include_str!("tree/words.js");

/// The module with the functions that the words call.
pub(crate) const NATIVE: &str = "bine:internal/tree-functions";

/// The exports of [`NATIVE`].
pub(crate) fn exports(state: &State) -> Vec<(String, NativeExport)> {
    let export = |(name, function): &(&str, Native)| {
        let callback = TreeFunction { state: state.itself(), function: *function };
        ((*name).to_owned(), NativeExport::Function(Rc::new(callback)))
    };
    FUNCTIONS.iter().map(export).collect()
}

struct TreeFunction {
    state: Rc<State>,
    function: Native,
}

impl Callback for TreeFunction {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let result = (self.function)(&self.state.trees, arguments);
        result.map_err(|failure| failure.throw(arguments.ctx()))
    }
}
