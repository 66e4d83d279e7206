//! Tests of the script engine through its public interface.

mod calls;
mod contexts;
mod errors;
mod globals;
mod hostile;
mod markup;
mod modules;
mod records;
mod rows;
mod support;
mod trees;
mod values;
