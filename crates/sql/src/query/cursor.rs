//! Cursors: the end of an answer, as a text that a client sends back.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lariat_seal::{Keyring, SealError};
use serde_json::{Value as Json, json};

use super::error::QueryError;
use super::plan::Plan;
use crate::field::FieldType;
use crate::param::Param;
use crate::revision::Revision;

/// The end of an answer: the sort keys of its last row, and its revision.
///
/// A hash binds it to the kind, and to the conditions and the order of its query; the hash is the same in all
/// processes. A cursor of an encrypted kind is encrypted with the keys of the kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cursor {
    pub(crate) revision: Revision,
    pub(crate) keys: Vec<Param>,
}

/// The error of a cursor that cannot be decrypted.
const DAMAGED: QueryError = QueryError::Cursor("it is damaged");

const ANOTHER: QueryError = QueryError::Cursor("another query made it");

const NOT_OPENED: QueryError =
    QueryError::Cursor("it is damaged, or another query or a cache with another key made it");

impl Cursor {
    /// Writes the cursor for a query, with the keys of an encrypted kind.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be encrypted.
    pub(crate) fn write(&self, plan: &Plan, keys: Option<&Keyring>) -> Result<String, SealError> {
        let values: Vec<Json> = self.keys.iter().map(write).collect();
        let revision = self.revision.to_string();
        let bytes = match keys {
            None => {
                let shape = URL_SAFE_NO_PAD.encode(plan.shape);
                json!([shape, revision, values]).to_string().into_bytes()
            }
            Some(keys) => keys.seal(
                &plan.shape,
                json!([revision, values]).to_string().as_bytes(),
            )?,
        };
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads a cursor that was written for the same query.
    ///
    /// Its keys are checked against the types that the query sorts by, because a client may have changed it.
    ///
    /// # Errors
    ///
    /// Fails if the cursor is damaged, or was written for another query or with other keys.
    pub(crate) fn read(
        text: &str,
        plan: &Plan,
        keys: Option<&Keyring>,
    ) -> Result<Self, QueryError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| DAMAGED)?;
        let (revision, values): (String, Vec<Json>) = match keys {
            None => {
                let (shape, revision, values): (String, _, _) =
                    serde_json::from_slice(&bytes).map_err(|_| DAMAGED)?;
                // Not a secret, only a check against mistakes: access is checked with each query.
                if shape != URL_SAFE_NO_PAD.encode(plan.shape) {
                    return Err(ANOTHER);
                }
                (revision, values)
            }
            Some(keys) => {
                let opened = keys.open(&plan.shape, &bytes).map_err(|_| NOT_OPENED)?;
                serde_json::from_slice(&opened).map_err(|_| DAMAGED)?
            }
        };
        let params: Option<Vec<Param>> = values.iter().map(param).collect();
        let keys = params.filter(|keys| fits(plan, keys));
        Ok(Self {
            revision: revision.parse().map_err(|_| DAMAGED)?,
            keys: keys.ok_or(DAMAGED)?,
        })
    }
}

/// Returns whether keys are of the types that rows are sorted by.
fn fits(plan: &Plan, keys: &[Param]) -> bool {
    let types: Vec<FieldType> = plan
        .orders
        .iter()
        .map(|order| order.of)
        .chain([FieldType::Text, FieldType::Natural])
        .collect();
    // Every object has a name.
    types.len() == keys.len()
        && keys.last() != Some(&Param::Null)
        && types.iter().zip(keys).all(|(of, key)| is_of(*of, key))
}

/// Returns whether a key is a value of a column of a type.
fn is_of(of: FieldType, key: &Param) -> bool {
    match (of, key) {
        (_, Param::Null)
        | (FieldType::Text, Param::Text(_))
        | (FieldType::Natural, Param::Bytes(_)) => true,
        (FieldType::Integer | FieldType::Time, Param::Integer(_)) => true,
        (FieldType::Boolean, Param::Integer(number)) => matches!(number, 0 | 1),
        (FieldType::Real, Param::Real(number)) => number.is_finite(),
        (FieldType::Quantity, Param::Bytes(bytes)) => bytes.len() == 16,
        (FieldType::Ip, Param::Bytes(bytes)) => {
            matches!((bytes.first(), bytes.len()), (Some(4), 5) | (Some(6), 17))
        }
        _ => false,
    }
}

fn write(param: &Param) -> Json {
    match param {
        // A row never contains a list.
        Param::Null | Param::List(_) => Json::Null,
        Param::Text(text) => json!(text),
        Param::Integer(number) => json!(number),
        // Written as bits: a decimal number could be rounded.
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
    use lariat_seal::LocalKeys;
    use proptest::prelude::*;

    use super::*;
    use crate::field::Field;
    use crate::query::{Query, Scope, field, label};
    use crate::schema::Schema;

    const FIELDS: [(&str, FieldType); 7] = [
        ("text", FieldType::Text),
        ("natural", FieldType::Natural),
        ("integer", FieldType::Integer),
        ("real", FieldType::Real),
        ("boolean", FieldType::Boolean),
        ("quantity", FieldType::Quantity),
        ("ip", FieldType::Ip),
    ];

    fn schema(kind: &str) -> Schema {
        let fields = FIELDS.map(|(name, of)| Field::path(name, of).unwrap());
        Schema::new(lariat_core::Gvk::new("", "v1", kind), fields).unwrap()
    }

    fn plan(query: &Query) -> Plan {
        Plan::new(&Scope::of(&schema("Pod")), query).unwrap()
    }

    /// Sorts by every type.
    fn all() -> Query {
        let query = FIELDS
            .iter()
            .fold(Query::new(), |query, (name, _)| query.sort(field(name)));
        query.limit(5)
    }

    fn cursor() -> Cursor {
        Cursor {
            revision: "7-00000001-3".parse().unwrap(),
            keys: vec![
                Param::Text("a\"b\0".to_owned()),
                Param::Bytes(vec![0, 255]),
                Param::Integer(-1),
                Param::Real(0.952_566_401_990_008_5),
                Param::Integer(1),
                Param::Null,
                Param::Bytes(vec![4, 10, 0, 0, 1]),
                Param::Null,
                Param::Bytes(vec![b'a', 0, b'a']),
            ],
        }
    }

    #[tokio::test]
    async fn a_cursor_is_read_by_the_query_that_made_it_and_by_no_other() {
        let key = LocalKeys::from_bytes(&std::array::from_fn::<u8, 32, _>(|place| place as u8));
        let keys = Keyring::create(&key.unwrap()).await.unwrap();
        for keys in [None, Some(&keys)] {
            let text = cursor().write(&plan(&all()), keys).unwrap();
            assert_eq!(Cursor::read(&text, &plan(&all()), keys), Ok(cursor()));
            assert!(Cursor::read(&text[1..], &plan(&all()), keys).is_err());
            assert!(Cursor::read("", &plan(&all()), keys).is_err());
            for other in [
                all().sort(field("metadata.uid")),
                all().filter(field("text").equals("a")),
                all().filter(label("a").exists()),
                all().namespaces(["a"]),
            ] {
                assert!(Cursor::read(&text, &plan(&other), keys).is_err());
            }
            let of_other_kind = Plan::new(&Scope::of(&schema("Node")), &all()).unwrap();
            assert!(Cursor::read(&text, &of_other_kind, keys).is_err());
            // What is counted, how many come and how old they may be is another matter.
            let same = all()
                .limit(7)
                .summarize(field("text"))
                .at_least("3".parse().unwrap());
            assert_eq!(Cursor::read(&text, &plan(&same), keys), Ok(cursor()));
        }
    }

    #[tokio::test]
    async fn a_cursor_of_an_encrypted_kind_shows_nothing_and_opens_with_its_key_only() {
        let key = |seed: u8| {
            LocalKeys::from_bytes(&std::array::from_fn::<u8, 32, _>(|at| seed + at as u8)).unwrap()
        };
        let keys = Keyring::create(&key(1)).await.unwrap();
        let other = Keyring::create(&key(2)).await.unwrap();
        let text = cursor().write(&plan(&all()), Some(&keys)).unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        assert!(!bytes.windows(2).any(|part| part == b"a\\"));
        assert!(Cursor::read(&text, &plan(&all()), Some(&other)).is_err());
        assert!(Cursor::read(&text, &plan(&all()), None).is_err());
        let plain = cursor().write(&plan(&all()), None).unwrap();
        assert!(Cursor::read(&plain, &plan(&all()), Some(&keys)).is_err());
        let rotated = keys.rotated().unwrap();
        assert_eq!(
            Cursor::read(&text, &plan(&all()), Some(&rotated)),
            Ok(cursor())
        );
    }

    #[test]
    fn the_hash_of_a_query_is_the_same_in_all_processes() {
        let shape = URL_SAFE_NO_PAD.encode(plan(&all()).shape);
        assert_eq!(shape, "1kQ1k_jv4-2Yik0KGr2N0Vhjh5YCYLkenf-fh3WseDU");
    }

    fn any_param() -> impl Strategy<Value = Param> {
        prop_oneof![
            Just(Param::Null),
            any::<String>().prop_map(Param::Text),
            any::<i64>().prop_map(Param::Integer),
            any::<u64>().prop_map(|bits| Param::Real(f64::from_bits(bits))),
            prop::collection::vec(any::<u8>(), 0..18).prop_map(Param::Bytes),
        ]
    }

    proptest! {
        #[test]
        fn a_forged_cursor_has_keys_of_their_types_or_is_refused(keys in prop::collection::vec(any_param(), 0..11)) {
            let plan = plan(&all());
            let forged = Cursor { revision: Revision::default(), keys };
            let text = forged.write(&plan, None).unwrap();
            if let Ok(read) = Cursor::read(&text, &plan, None) {
                prop_assert_eq!(read.keys.len(), FIELDS.len() + 2);
                for ((_, of), key) in FIELDS.iter().zip(&read.keys) {
                    prop_assert!(is_of(*of, key));
                }
            }
        }

        #[test]
        fn no_text_is_a_cursor_by_chance(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let plan = plan(&all());
            prop_assert!(Cursor::read(&text, &plan, None).is_err());
            prop_assert!(Cursor::read(&URL_SAFE_NO_PAD.encode(bytes), &plan, None).is_err());
        }
    }
}
