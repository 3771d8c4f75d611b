//! The status of controllers and handlers, and its text form.

mod display;
mod status;

pub use status::{ControllerStatus, FactoryStatus, HandlerStatus};
