//! Websites, in requests, with webhooks that the embedded cluster calls over loopback; so time is real here.

mod bench;
mod lifecycle;
mod versions;
mod webhooks;
