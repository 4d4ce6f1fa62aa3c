//! Pools of warm worker processes: the library and the command.

pub mod cli;
pub mod config;
mod daemon;
mod text;
