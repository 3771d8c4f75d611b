//! The examples as processes: what they print, and that they end well.

mod dynamic_audit;
mod quickstart;
mod related_kinds;
mod sample_controller;
mod useless_machine;
