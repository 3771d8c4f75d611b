//! Rules as JSON, for programs in other languages.

use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};

use crate::fault::{Action, After, ErrorBody, Refusal};
use crate::journal::RequestFilter;
use crate::rules::Rule;

/// A rule in the JSON of the [admin endpoint](crate::ClusterBuilder::admin).
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RuleJson {
    action: ActionJson,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verb: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subresource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skip: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probability: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    for_seconds: Option<Seconds>,
}

/// An [`Action`] by its name in camel case, with its parts by name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ActionJson {
    Delay(Span),
    Refuse(RefusalJson),
    NoAnswer,
    Disconnect,
    LoseReply,
    DelayReply(Span),
    NoReply,
    Expire,
    Gone,
    StaleRead,
    Conflict,
    SkipVersions(Versions),
    EndWatch(AfterJson),
    CutWatch(AfterJson),
    HangWatch(AfterJson),
    ReplayEvents(Events),
    RefuseWatchList,
    LegacyDiscovery,
    OmitInitialEnd,
    Bandwidth(Rate),
    Freeze,
    SkipStates,
    Recreate(Named),
    Reject(Message),
    ExceedQuota(Quota),
    LimitRequests(Limit),
    CutBody(Length),
    Truncate(Length),
    Garble,
    Html,
    DuplicateEvents,
}

/// A span of time, which cannot be negative or endless.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
struct Seconds(Duration);

impl TryFrom<f64> for Seconds {
    type Error = &'static str;

    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        let time = Duration::try_from_secs_f64(seconds);
        time.map(Self)
            .map_err(|_| "a number of seconds from 0 on is needed")
    }
}

impl From<Seconds> for f64 {
    fn from(Seconds(time): Seconds) -> Self {
        time.as_secs_f64()
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Span {
    seconds: Seconds,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RefusalJson {
    code: Code,
    #[serde(default)]
    body: ErrorBodyJson,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
struct Code(StatusCode);

impl TryFrom<u16> for Code {
    type Error = &'static str;

    fn try_from(code: u16) -> Result<Self, Self::Error> {
        StatusCode::from_u16(code)
            .ok()
            .filter(|code| code.is_client_error() || code.is_server_error())
            .map(Self)
            .ok_or("a code from 400 to 599 is needed")
    }
}

impl From<Code> for u16 {
    fn from(Code(code): Code) -> Self {
        code.as_u16()
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ErrorBodyJson {
    #[default]
    Status,
    Text,
    Html,
}

/// The time at which something happens to a watch: `{"events": 3}` or `{"seconds": 1.5}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum AfterJson {
    Events(usize),
    Seconds(Seconds),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Versions {
    versions: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Events {
    events: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rate {
    bytes_per_second: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    message: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quota {
    quota: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    requests: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    bytes: usize,
}

/// Parses the JSON rules of the [admin endpoint](crate::ClusterBuilder::admin).
impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RuleJson::deserialize(deserializer).map(Self::from)
    }
}

impl From<RuleJson> for Rule {
    fn from(json: RuleJson) -> Self {
        let mut rule = Self::new(json.action.into());
        rule.filter = RequestFilter {
            verb: json.verb,
            resource: json.resource,
            subresource: json.subresource,
            namespace: json.namespace,
            name: json.name,
            client: json.client,
        };
        let options = &mut rule.inner;
        options.kind = json.kind;
        options.skip = json.skip.unwrap_or(options.skip);
        options.times = json.times.unwrap_or(options.times);
        options.probability = json.probability.unwrap_or(options.probability);
        options.lasts = json.for_seconds.map(|Seconds(time)| time);
        rule
    }
}

impl From<&Rule> for RuleJson {
    fn from(rule: &Rule) -> Self {
        let (filter, options) = (rule.filter.clone(), &rule.inner);
        Self {
            action: (&options.action).into(),
            verb: filter.verb,
            resource: filter.resource,
            kind: options.kind.clone(),
            subresource: filter.subresource,
            namespace: filter.namespace,
            name: filter.name,
            client: filter.client,
            // Defaults are left out, so that a rule reads as it was written.
            skip: Some(options.skip).filter(|skip| *skip > 0),
            times: Some(options.times).filter(|times| *times < u64::MAX),
            probability: Some(options.probability).filter(|probability| *probability < 1.0),
            for_seconds: options.lasts.map(Seconds),
        }
    }
}

impl From<ActionJson> for Action {
    fn from(json: ActionJson) -> Self {
        match json {
            ActionJson::Delay(span) => Self::Delay(span.seconds.0),
            ActionJson::Refuse(refusal) => Self::Refuse(refusal.into()),
            ActionJson::NoAnswer => Self::NoAnswer,
            ActionJson::Disconnect => Self::Disconnect,
            ActionJson::LoseReply => Self::LoseReply,
            ActionJson::DelayReply(span) => Self::DelayReply(span.seconds.0),
            ActionJson::NoReply => Self::NoReply,
            ActionJson::Expire => Self::Expire,
            ActionJson::Gone => Self::Gone,
            ActionJson::StaleRead => Self::StaleRead,
            ActionJson::Conflict => Self::Conflict,
            ActionJson::SkipVersions(skipped) => Self::SkipVersions(skipped.versions),
            ActionJson::EndWatch(after) => Self::EndWatch(after.into()),
            ActionJson::CutWatch(after) => Self::CutWatch(after.into()),
            ActionJson::HangWatch(after) => Self::HangWatch(after.into()),
            ActionJson::ReplayEvents(replayed) => Self::ReplayEvents(replayed.events),
            ActionJson::RefuseWatchList => Self::RefuseWatchList,
            ActionJson::LegacyDiscovery => Self::LegacyDiscovery,
            ActionJson::OmitInitialEnd => Self::OmitInitialEnd,
            ActionJson::Bandwidth(rate) => Self::Bandwidth(rate.bytes_per_second),
            ActionJson::Freeze => Self::Freeze,
            ActionJson::SkipStates => Self::SkipStates,
            ActionJson::Recreate(named) => Self::Recreate(named.name),
            ActionJson::Reject(reason) => Self::Reject(reason.message),
            ActionJson::ExceedQuota(exceeded) => Self::ExceedQuota(exceeded.quota),
            ActionJson::LimitRequests(limit) => Self::LimitRequests(limit.requests),
            ActionJson::CutBody(length) => Self::CutBody(length.bytes),
            ActionJson::Truncate(length) => Self::Truncate(length.bytes),
            ActionJson::Garble => Self::Garble,
            ActionJson::Html => Self::Html,
            ActionJson::DuplicateEvents => Self::DuplicateEvents,
        }
    }
}

impl From<&Action> for ActionJson {
    fn from(action: &Action) -> Self {
        match action.clone() {
            Action::Delay(time) => Self::Delay(Span {
                seconds: Seconds(time),
            }),
            Action::Refuse(refusal) => Self::Refuse((&refusal).into()),
            Action::NoAnswer => Self::NoAnswer,
            Action::Disconnect => Self::Disconnect,
            Action::LoseReply => Self::LoseReply,
            Action::DelayReply(time) => Self::DelayReply(Span {
                seconds: Seconds(time),
            }),
            Action::NoReply => Self::NoReply,
            Action::Expire => Self::Expire,
            Action::Gone => Self::Gone,
            Action::StaleRead => Self::StaleRead,
            Action::Conflict => Self::Conflict,
            Action::SkipVersions(versions) => Self::SkipVersions(Versions { versions }),
            Action::EndWatch(after) => Self::EndWatch(after.into()),
            Action::CutWatch(after) => Self::CutWatch(after.into()),
            Action::HangWatch(after) => Self::HangWatch(after.into()),
            Action::ReplayEvents(events) => Self::ReplayEvents(Events { events }),
            Action::RefuseWatchList => Self::RefuseWatchList,
            Action::LegacyDiscovery => Self::LegacyDiscovery,
            Action::OmitInitialEnd => Self::OmitInitialEnd,
            Action::Bandwidth(bytes_per_second) => Self::Bandwidth(Rate { bytes_per_second }),
            Action::Freeze => Self::Freeze,
            Action::SkipStates => Self::SkipStates,
            Action::Recreate(name) => Self::Recreate(Named { name }),
            Action::Reject(message) => Self::Reject(Message { message }),
            Action::ExceedQuota(quota) => Self::ExceedQuota(Quota { quota }),
            Action::LimitRequests(requests) => Self::LimitRequests(Limit { requests }),
            Action::CutBody(bytes) => Self::CutBody(Length { bytes }),
            Action::Truncate(bytes) => Self::Truncate(Length { bytes }),
            Action::Garble => Self::Garble,
            Action::Html => Self::Html,
            Action::DuplicateEvents => Self::DuplicateEvents,
        }
    }
}

impl From<RefusalJson> for Refusal {
    fn from(json: RefusalJson) -> Self {
        let refusal = Self::new(json.code.0).body(match json.body {
            ErrorBodyJson::Status => ErrorBody::Status,
            ErrorBodyJson::Text => ErrorBody::Text,
            ErrorBodyJson::Html => ErrorBody::Html,
        });
        match json.retry_after_seconds {
            Some(seconds) => refusal.retry_after(Duration::from_secs(seconds)),
            None => refusal,
        }
    }
}

impl From<&Refusal> for RefusalJson {
    fn from(refusal: &Refusal) -> Self {
        Self {
            code: Code(refusal.code),
            body: match refusal.body {
                ErrorBody::Status => ErrorBodyJson::Status,
                ErrorBody::Text => ErrorBodyJson::Text,
                ErrorBody::Html => ErrorBodyJson::Html,
            },
            retry_after_seconds: refusal.retry_after,
        }
    }
}

impl From<AfterJson> for After {
    fn from(json: AfterJson) -> Self {
        match json {
            AfterJson::Events(events) => Self::Events(events),
            AfterJson::Seconds(Seconds(time)) => Self::Time(time),
        }
    }
}

impl From<After> for AfterJson {
    fn from(after: After) -> Self {
        match after {
            After::Events(events) => Self::Events(events),
            After::Time(time) => Self::Seconds(Seconds(time)),
        }
    }
}
