//! Files of TypeScript for the browser in a program in Rust: `browser_file!`.
//!
//! The macro compiles the files. Here are their functions as values of attributes, and what the linker
//! collects: the modules, and the services that they import.

mod function;
mod subsystem;

pub use function::{BrowserData, BrowserFunction, BrowserHandler};

/// A module of the browser, as the macro registers it.
#[derive(Debug)]
pub struct BrowserModule {
    /// The path of its URL, which has a hash of the code.
    pub path: &'static str,
    /// The code, in JavaScript.
    pub code: &'static str,
}

inventory::collect!(BrowserModule);

/// A service that a file of the browser imports.
#[derive(Debug)]
pub struct ImportedService {
    /// The name of the service.
    pub name: &'static str,
    /// The module that contains the macro call.
    pub module: &'static str,
    /// The file that contains the macro call.
    pub source: &'static str,
    /// The path of the file of the browser, from the folder of that one.
    pub file: &'static str,
    /// The place of the import.
    pub line: u32,
    /// The column of the import.
    pub column: u32,
}

inventory::collect!(ImportedService);
