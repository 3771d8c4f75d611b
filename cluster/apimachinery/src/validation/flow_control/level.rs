//! PriorityLevelConfigurations.

use super::{check_status, differs_from_mandatory};
use crate::object::metadata_text;
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::structs::{self, Members, Shape};

/// An annotation by which v1beta3 keeps a zero; the other versions do without.
// `PriorityLevelPreserveZeroConcurrencySharesKey`.
const ROUND_TRIP: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

/// The levels that the server needs: name and spec.
// `MandatoryPriorityLevelConfigurations`.
const MANDATORY: &[(&str, &str)] = &[
    (
        "exempt",
        r#"{"type":"Exempt","exempt":{"nominalConcurrencyShares":0,"lendablePercent":0}}"#,
    ),
    (
        "catch-all",
        r#"{"type":"Limited","limited":{"nominalConcurrencyShares":5,"limitResponse":{"type":"Reject"},
            "lendablePercent":0}}"#,
    ),
];

const MOST_QUEUES: i64 = 10_000_000;
/// The number of bits of a hash that choose the queues of a flow.
// `shufflesharding.MaxHashBits`: what is left of 64 bits after rounding.
const HASH_BITS: i64 = 60;

pub(in crate::validation) fn priority_level(context: &Context<'_>, causes: &mut Causes) {
    if !context.updates(Part::Status) {
        let (spec, name) = (context.get("spec"), metadata_text(context.object, "name"));
        let annotations = context.get("metadata").get("annotations");
        if annotations.has(ROUND_TRIP) {
            let detail = format!("annotation '{ROUND_TRIP}' is forbidden");
            causes.forbidden(&annotations, &detail);
        }
        check_level(&spec, name, causes);
        // How many seats the exempt level lends may be tuned; that it is exempt may not.
        let free: &[&str] = if name == "exempt" { &["exempt"] } else { &[] };
        if differs_from_mandatory(MANDATORY, &spec, name, free) {
            let except = match free {
                [] => "",
                _ => " except the 'spec.exempt' field",
            };
            let detail = format!("spec of '{name}'{except} must equal the fixed value");
            causes.invalid_struct(&spec, &structs::whole(spec.value(), LEVEL), &detail);
        }
    }
    check_status(&context.get("status"), causes);
}

fn check_level(spec: &Field<'_>, name: &str, causes: &mut Causes) {
    let kind = spec.get("type");
    // Reported beside the other errors of the level.
    if (name == "exempt") != (kind.text() == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        causes.invalid_as(&kind, kind.text(), detail);
    }
    let (exempt, limited) = (spec.get("exempt"), spec.get("limited"));
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                causes.forbidden(&limited, "must be nil if the type is not Limited");
            }
            check_shares(&exempt, causes);
        }
        "Limited" => {
            if exempt.is_set() {
                causes.forbidden(&exempt, "must be nil if the type is Limited");
            }
            if limited.is_set() {
                check_limited(&limited, causes);
            } else {
                causes.required(&limited, "must not be empty when type is Limited");
            }
        }
        _ => causes.unsupported(&kind, &["Exempt", "Limited"]),
    }
}

/// Checks how much of the server a level may use, and lend.
fn check_shares(level: &Field<'_>, causes: &mut Causes) {
    check_number(&level.get("nominalConcurrencyShares"), NOT_NEGATIVE, causes);
    check_lendable(level, causes);
}

fn check_lendable(level: &Field<'_>, causes: &mut Causes) {
    let lendable = level.get("lendablePercent");
    if lendable
        .int()
        .is_some_and(|percent| !(0..=100).contains(&percent))
    {
        causes.invalid(&lendable, "must be between 0 and 100, inclusive");
    }
}

fn check_limited(limited: &Field<'_>, causes: &mut Causes) {
    let shares = limited.get("nominalConcurrencyShares");
    check_number(&shares, NOT_NEGATIVE, causes);
    let response = limited.get("limitResponse");
    let (kind, queuing) = (response.get("type"), response.get("queuing"));
    match kind.text() {
        "Reject" if queuing.is_set() => {
            // The message says "Limited" where it means "Queue"; it is the server's.
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            causes.forbidden(&queuing, detail);
        }
        "Reject" => {}
        "Queue" if queuing.is_set() => check_queuing(&queuing, causes),
        "Queue" => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            causes.required(&queuing, detail);
        }
        _ => causes.unsupported(&kind, &["Queue", "Reject"]),
    }
    check_lendable(limited, causes);
    let borrowing = limited.get("borrowingLimitPercent");
    let detail = "if specified, must be a non-negative integer";
    check_number(&borrowing, detail, causes);
}

const NOT_NEGATIVE: &str = "must be a non-negative integer";

fn check_number(at: &Field<'_>, detail: &str, causes: &mut Causes) {
    if at.int().is_some_and(|number| number < 0) {
        causes.invalid(at, detail);
    }
}

fn check_queuing(queuing: &Field<'_>, causes: &mut Causes) {
    let positive = "must be positive";
    let [length, queues, hand] = ["queueLengthLimit", "queues", "handSize"].map(|name| {
        let at = queuing.get(name);
        let number = at.int().unwrap_or(0);
        (at, number)
    });
    if length.1 <= 0 {
        causes.invalid_as(&length.0, length.1, positive);
    }
    if queues.1 <= 0 {
        causes.invalid_as(&queues.0, queues.1, positive);
    } else if queues.1 > MOST_QUEUES {
        let detail = format!("must not be greater than {MOST_QUEUES}");
        causes.invalid(&queues.0, &detail);
    }
    // `RequiredEntropyBits`. The maximum keeps the logarithm finite for an invalid number of queues.
    let bits = ((queues.1.max(1) as f64).log2() * hand.1 as f64).ceil() as i64;
    if hand.1 <= 0 {
        causes.invalid_as(&hand.0, hand.1, positive);
    } else if hand.1 > queues.1 {
        let detail = format!("should not be greater than queues ({})", queues.1);
        causes.invalid(&hand.0, &detail);
    } else if bits > HASH_BITS {
        let detail = format!(
            "required entropy bits of deckSize {} and handSize {} should not be greater than {HASH_BITS}",
            queues.1, hand.1
        );
        causes.invalid(&hand.0, &detail);
    }
}

/// The form of a PriorityLevelConfiguration's spec in messages.
const LEVEL: Members = &[
    ("type", "Type", Shape::Text),
    (
        "limited",
        "Limited",
        Shape::Struct(&[
            (
                "nominalConcurrencyShares",
                "NominalConcurrencyShares",
                Shape::Number,
            ),
            (
                "limitResponse",
                "LimitResponse",
                Shape::Struct(&[
                    ("type", "Type", Shape::Text),
                    (
                        "queuing",
                        "Queuing",
                        Shape::Struct(&[
                            ("queues", "Queues", Shape::Number),
                            ("handSize", "HandSize", Shape::Number),
                            ("queueLengthLimit", "QueueLengthLimit", Shape::Number),
                        ]),
                    ),
                ]),
            ),
            ("lendablePercent", "LendablePercent", Shape::Value),
            (
                "borrowingLimitPercent",
                "BorrowingLimitPercent",
                Shape::Value,
            ),
        ]),
    ),
    (
        "exempt",
        "Exempt",
        Shape::Struct(&[
            (
                "nominalConcurrencyShares",
                "NominalConcurrencyShares",
                Shape::Value,
            ),
            ("lendablePercent", "LendablePercent", Shape::Value),
        ]),
    ),
];
