//! The data browser at `/_bine/data`: tables, rows, search, changes by the rules of each table, CSV,
//! and the audit log.

mod access;
mod address;
mod audit_page;
mod cell;
mod choices;
mod csv;
mod edit;
mod endpoint;
mod limiter;
mod page;
mod request;
mod row_form;
mod row_list;
mod search;
mod subsystem;
mod table_list;
