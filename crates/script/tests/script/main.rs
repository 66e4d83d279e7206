//! Tests of the script engine through its public interface.

mod calls;
mod errors;
mod globals;
mod hostile;
mod markup;
mod modules;
mod support;
mod values;
