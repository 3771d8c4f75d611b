//! The API as a client sees it, over the in-process service and on paused time.

mod bench;

mod abuse;

mod compression;
mod kinds;
mod metadata;
mod reads;
mod sockets;
mod watches;
mod writes;
