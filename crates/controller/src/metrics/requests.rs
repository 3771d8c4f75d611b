//! Metrics of requests to the API server, under the names of client-go.

use std::fmt;

use lariat_cache::RequestTimes;

use super::output::Output;
use super::scrape::{Label, Member};

pub(super) fn write(members: &[Member], out: &mut Output<'_>) -> fmt::Result {
    out.counters(
        "rest_client_requests_total",
        "Requests by method and status code.",
        members.iter().flat_map(counts),
    )?;
    out.histograms(
        "rest_client_request_duration_seconds",
        "Time to the headers of the response.",
        members.iter().flat_map(times),
    )
}

fn counts(member: &Member) -> impl Iterator<Item = ([Label<'_>; 4], u64)> {
    let counts = member.requests.counts.iter();
    counts.map(|each| {
        let [context, host] = labels(member);
        let labels = [context, ("code", &each.code), ("method", each.method), host];
        (labels, each.count)
    })
}

fn times(member: &Member) -> impl Iterator<Item = ([Label<'_>; 3], &RequestTimes)> {
    let times = member.requests.times.iter();
    times.map(|each| {
        let [context, host] = labels(member);
        ([context, ("verb", each.method), host], each)
    })
}

fn labels(member: &Member) -> [Label<'_>; 2] {
    [("ctx", &member.context), ("host", &member.requests.host)]
}
