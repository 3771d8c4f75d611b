//! Where an answer ended, as text that a client hands back.

use std::hash::{DefaultHasher, Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value as Json, json};

use super::plan::{Plan, QueryError};
use crate::revision::Revision;
use crate::sql::Param;

/// The last row of an answer: what the objects are sorted by, and the revision of the answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cursor {
    pub(crate) revision: Revision,
    pub(crate) keys: Vec<Param>,
}

impl Cursor {
    /// Writes it for a query.
    pub(crate) fn write(&self, plan: &Plan) -> String {
        let keys: Vec<Json> = self.keys.iter().map(write).collect();
        let cursor = json!([shape(plan), self.revision.to_string(), keys]);
        URL_SAFE_NO_PAD.encode(cursor.to_string())
    }

    /// Reads one that was written for the same query.
    pub(crate) fn read(text: &str, plan: &Plan, keys: usize) -> Result<Self, QueryError> {
        let failed = || QueryError::Cursor("it is damaged");
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| failed())?;
        let (of, revision, read): (String, String, Vec<Json>) =
            serde_json::from_slice(&json).map_err(|_| failed())?;
        if of != shape(plan) {
            return Err(QueryError::Cursor("another query made it"));
        }
        let read: Option<Vec<Param>> = read.iter().map(param).collect();
        let read = read.filter(|read| read.len() == keys).ok_or_else(failed)?;
        Ok(Self {
            revision: revision.parse().map_err(|_| failed())?,
            keys: read,
        })
    }
}

/// Returns a text that differs between queries with other conditions or another order.
fn shape(plan: &Plan) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{:?} {:?} {:?}", plan.filters, plan.words, plan.orders).hash(&mut hasher);
    format!("{:x}", hasher.finish())
}

fn write(param: &Param) -> Json {
    match param {
        // No row has a list.
        Param::Null | Param::List(_) => Json::Null,
        Param::Text(text) => json!(text),
        Param::Integer(number) => json!(number),
        // By its bits: as a number it could come back as its neighbour.
        Param::Real(number) => json!([number.to_bits()]),
        Param::Bytes(bytes) => json!({"b": URL_SAFE_NO_PAD.encode(bytes)}),
    }
}

fn param(json: &Json) -> Option<Param> {
    Some(match json {
        Json::Null => Param::Null,
        Json::String(text) => Param::Text(text.clone()),
        Json::Number(number) => Param::Integer(number.as_i64()?),
        Json::Array(number) => Param::Real(f64::from_bits(number.first()?.as_u64()?)),
        Json::Object(bytes) => {
            Param::Bytes(URL_SAFE_NO_PAD.decode(bytes.get("b")?.as_str()?).ok()?)
        }
        Json::Bool(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::query::{Query, field};
    use crate::schema::Schema;

    fn plan(query: &Query) -> Plan {
        let gvk = lariat_core::Gvk::new("", "v1", "Pod");
        Plan::new(&Schema::new(gvk, []).unwrap(), query, &Arc::default()).unwrap()
    }

    #[test]
    fn a_cursor_is_read_by_the_query_that_made_it_and_by_no_other() {
        let by_name = plan(&Query::new().sort(field("metadata.name")).limit(5));
        let cursor = Cursor {
            revision: "7-00000001-3".parse().unwrap(),
            keys: vec![
                Param::Null,
                Param::Text("a\"b".to_owned()),
                Param::Integer(-1),
                Param::Real(0.952_566_401_990_008_5),
                Param::Bytes(vec![0, 255]),
            ],
        };
        let text = cursor.write(&by_name);
        assert_eq!(Cursor::read(&text, &by_name, 5), Ok(cursor));
        assert!(Cursor::read(&text, &by_name, 4).is_err());
        assert!(Cursor::read(&text[1..], &by_name, 5).is_err());
        assert!(Cursor::read("", &by_name, 5).is_err());
        let other = plan(
            &Query::new()
                .sort_descending(field("metadata.name"))
                .limit(5),
        );
        let another = QueryError::Cursor("another query made it");
        assert_eq!(Cursor::read(&text, &other, 5), Err(another));
    }
}
