//! The examples as processes: what they print, and that they end well.

mod quickstart;
