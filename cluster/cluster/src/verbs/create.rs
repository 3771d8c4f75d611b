//! POST to a collection.

use lariat_apimachinery::object::{Object, metadata_mut};

use super::answer::{Answer, Success};
use super::creation::{Created, Creation};
use super::ownership;
use crate::status::ApiError;
use crate::strategy;
use crate::verbs::call::Call;
use crate::wire::write_options::WriteOptions;

pub(super) async fn create(call: &Call) -> Result<Answer, ApiError> {
    let dry_run = call.query.check_write(WriteOptions::Create)?;
    let mut sent = call.decode()?;
    // Dropped before the owners are recorded. A PUT or an apply that creates an object keeps them.
    for member in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata_mut(&mut sent).remove(member);
    }
    store_new(call, sent, dry_run).await
}

/// Creates an object whose fields will be those of the client that sent it.
pub(super) async fn store_new(
    call: &Call,
    mut sent: Object,
    dry_run: bool,
) -> Result<Answer, ApiError> {
    ownership::account(call, None, &mut sent);
    store_accounted(call, sent, dry_run).await
}

/// Creates an object whose fields have their owners.
pub(super) async fn store_accounted(
    call: &Call,
    sent: Object,
    dry_run: bool,
) -> Result<Answer, ApiError> {
    let creation = Creation::of(call);
    let request = call.as_creation(&sent, dry_run);
    let plugins = |object: &mut Object| creation.admit(object);
    let sent = request.mutate(&plugins, None, sent).await?;
    let profiles = strategy::profile_warnings(&call.resource, &sent);
    let created = creation.store(sent, dry_run, Some(request)).await;
    // These are given before the object is checked.
    if created.as_ref().map_or_else(
        |error| error.is_already_exists() || error.is_invalid(),
        |_| true,
    ) {
        profiles
            .into_iter()
            .for_each(|text| call.warnings.add(text));
    }
    Ok(match created? {
        Created::Stored(stored) => Answer::Object {
            stored,
            success: Success::Created,
        },
        Created::DryRun(object) => Answer::DryRunCreation(object),
    })
}
