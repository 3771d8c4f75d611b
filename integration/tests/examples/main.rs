//! The examples as processes: what they print, and that they end well.

mod autoscaler;
mod kronjob;
mod quickstart;
