//! Those who are measured: each reads all pods of a server and calls handlers.

mod floor;
mod job;
mod kube_rs;
mod lariat;
mod latencies;
mod scraper;
mod seen;
mod subjects;
mod tally;

pub(crate) use job::{Job, Live, Reader};
pub(crate) use kube_rs::{api as kube_api, client as kube_client};
pub(crate) use lariat::{Variant, pods as lariat_pods};
pub(crate) use scraper::scrape;
pub(crate) use subjects::{CASES, SUBJECTS, WITH_FLOOR, is_floor, start};
pub(crate) use tally::Tally;
