//! Output of the macros, and errors for wrong pages.

mod contained;
mod golden;
mod hostile;
mod refused;
mod shown;
