//! The status of controllers and handlers, and how it prints.

mod display;
mod status;

pub use status::{ControllerStatus, FactoryStatus, HandlerStatus};
