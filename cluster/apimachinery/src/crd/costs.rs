//! The costs of rules: how expensive one may be, and all of a schema together.
//!
//! Source: `cel_validation.go` of apiextensions-apiserver.

use serde_json::Value;

use super::parts::text;
use crate::cause::StatusCause;

/// The highest cost of one expression, for all values of its schema in an object.
// `StaticEstimatedCostLimit`.
const MOST_OF_ONE: u64 = 10_000_000;

/// The highest cost of all expressions of a schema.
// `StaticEstimatedCRDCostLimit`.
const MOST_OF_ALL: u64 = 100_000_000;

/// How many of the most expensive expressions are named.
const NAMED: usize = 4;

/// The costs of the expressions of a schema.
// `TotalCost`.
#[derive(Debug, Default)]
pub(super) struct Costs {
    total: u64,
    /// The most expensive expressions by field, the first one first.
    expensive: Vec<(String, u64)>,
}

impl Costs {
    /// Adds the cost of an expression.
    pub(super) fn add(&mut self, field: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        // Whatever contributes less than a hundredth is not worth naming.
        if cost < MOST_OF_ALL / 100 {
            return;
        }
        self.expensive.push((field.to_owned(), cost));
        self.expensive
            .sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.expensive.truncate(NAMED);
    }

    /// Returns what is wrong if all expressions together are too expensive.
    ///
    /// `path` is the path of the schema.
    pub(super) fn causes(self, path: &str) -> Vec<StatusCause> {
        if self.total <= MOST_OF_ALL {
            return Vec::new();
        }
        let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let fields = self.expensive.iter();
        let mut causes: Vec<_> = fields
            .map(|(field, _)| StatusCause::forbidden(field, detail))
            .collect();
        let detail = exceeded(
            "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
            self.total,
            MOST_OF_ALL,
        );
        causes.push(StatusCause::forbidden(path, &detail));
        causes
    }
}

/// Returns what is wrong with an expression that is too expensive by itself.
pub(super) fn check(what: &str, field: &str, cost: u64) -> Option<StatusCause> {
    let is_exceeded = cost > MOST_OF_ONE;
    is_exceeded.then(|| StatusCause::forbidden(field, &exceeded(what, cost, MOST_OF_ONE)))
}

/// Returns the cardinality of the values below a schema; `None` if unbounded.
// `extractMaxElements`.
pub(super) fn most_below(schema: &Value) -> Option<u64> {
    let limit = match text(schema, "type") {
        "object" if !schema["additionalProperties"].is_null() => "maxProperties",
        "array" => "maxItems",
        _ => return Some(1),
    };
    let limit = schema[limit].as_i64()?;
    Some(u64::try_from(limit).unwrap_or(0))
}

// `getCostErrorMessage`.
fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        // Or a factor of 1.0 would be reported.
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, \
         and maxLength where arrays, maps, and strings are declared)"
    )
}
