//! Tests of compiled modules: their code, their errors, and their pages in QuickJS.

mod engine;
mod golden;
mod handlers;
mod limits;
mod pages;
mod rows;
mod shapes;
mod starter;
mod values;
