//! The sizes that etcd refuses, in which a real server stores objects.

use std::io;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut};
use lariat_core::ObjectKey;
use serde_json::Value;

use crate::status::ApiError;
use crate::wire::protobuf;

/// The largest request that etcd takes, in bytes.
// DefaultMaxRequestBytes in etcd's embed.
const REQUEST: usize = 3 << 19;
/// The largest message that the API server's client of etcd sends, in bytes.
// defaultGRPCMaxSendMsgSize in etcd's client.
const MESSAGE: usize = 2 << 20;
/// The bytes of a transaction beside its keys and the object, counted on a kube-apiserver.
const TRANSACTION: usize = 22;
/// The bytes that etcd adds to a transaction before it measures it, counted on a kube-apiserver.
const ENVELOPE: usize = 18;

/// Refuses an object that etcd does not take.
///
/// An object that is too large is stored without its managed fields, if it is small enough then.
// As isTooLargeError and its callers in Go's handlers of requests.
pub(super) fn fit(
    resource: &Resource,
    key: &ObjectKey,
    object: &mut Object,
) -> Result<(), ApiError> {
    // Escaped, a text is at most six times as long; so most objects need not be encoded to be measured.
    if members_weight(object) <= REQUEST / 8 || check_size(resource, key, object).is_ok() {
        return Ok(());
    }
    metadata_mut(object).remove("managedFields");
    check_size(resource, key, object)
}

fn check_size(resource: &Resource, key: &ObjectKey, object: &Object) -> Result<(), ApiError> {
    let stored = stored_size(resource, object);
    // Three lengths around the object take a byte more each from here on, as protobuf writes them.
    let lengths = if stored < 1 << 21 { 0 } else { 3 };
    // Compared and written, the key is sent twice.
    let message = stored + 2 * key_size(resource, key) + TRANSACTION + lengths;
    if message > MESSAGE {
        return Err(ApiError::internal(format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max \
             ({message} vs. {MESSAGE})"
        )));
    }
    if message + ENVELOPE > REQUEST {
        return Err(ApiError::internal("etcdserver: request is too large"));
    }
    Ok(())
}

/// Returns the size of an object as a real server stores it: in protobuf, and custom ones in JSON.
fn stored_size(resource: &Resource, object: &Object) -> usize {
    let encoded = if resource.rules.custom {
        None
    } else {
        protobuf::size(object)
    };
    encoded.unwrap_or_else(|| json_size(object))
}

fn json_size(object: &Object) -> usize {
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, object).expect("counting bytes cannot fail");
    // A line feed follows.
    counted.0 + 1
}

/// Counts the bytes that are written to it.
struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the length of an object's key in etcd, such as `/registry/demo.dev/widgets/default/a`.
fn key_size(resource: &Resource, key: &ObjectKey) -> usize {
    let group = if resource.rules.custom {
        resource.group.len() + 1
    } else {
        0
    };
    "/registry/".len() + group + resource.plural.len() + 1 + key.as_str().len()
}

/// Returns the bytes of the names and texts of an object, and four for each value.
fn members_weight(object: &Object) -> usize {
    let members = object.iter();
    members
        .map(|(name, value)| name.len() + weight(value))
        .sum()
}

fn weight(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members_weight(members),
        _ => 0,
    };
    content + 4
}
