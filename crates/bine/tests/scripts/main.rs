//! Applications in TSX, through the whole server.

mod any_arguments;
mod browser_files;
mod channels;
mod errors;
mod events;
mod folder;
mod forms;
mod frames;
mod golden;
mod guide;
mod handlers;
mod hostile;
mod languages;
mod live;
mod pages;
mod remote;
mod scheduler;
mod service_types;
mod services;
mod session;
mod start;
mod starter;
mod tables;
mod tree_properties;
mod trees;
