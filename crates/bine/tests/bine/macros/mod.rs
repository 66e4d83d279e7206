//! Decides what a page shows, and what the compiler says of one that is wrong.

mod contained;
mod golden;
mod hostile;
mod refused;
mod shown;
