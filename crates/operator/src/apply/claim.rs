//! Decides whether an existing object may be written by the set, and whether its former owner is gone.
//!
//! Only the API server can answer that. A cache may be stale, restricted to namespaces or labels, or have one shard of
//! the owners, so an owner that is not in it may exist. An object that is not the set's yet is read from the API server
//! before it is taken over, and taken over in that state only. An object of another owner is taken over only if the API
//! server answers that this owner does not exist, or that another object has its name.
//!
//! **Invariant:** an object of another owner that exists, or that may exist, is neither changed nor deleted.

use lariat_core::{Gvk, ResourceKind};

use super::error::ObjectError;
use super::marks::{Found, Membership};
use super::meta::Existing;
use super::present::Present;
use super::resolve::Target;
use super::run::Run;

/// The right of a set to write an existing object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is a member of the set.
    Member,
    /// It belongs to a former name of the set, to a sibling set, or to nobody.
    ///
    /// It is written only in the state that was read from the API server.
    Transfer,
    /// It belongs to a set of another owner, which must be gone.
    LeftOver,
}

impl Run<'_> {
    /// Returns the right to write an existing object, by its marks alone.
    pub(super) fn claim(&self, existing: &Existing, target: &Target) -> Result<Claim, ObjectError> {
        let adopts = target.options.adopts.unwrap_or(self.set.options.adopts);
        // The controller reference decides first: it names the owner by uid and is what the garbage collector acts on.
        // Labels can be copied from one object to another by hand.
        let is_controlled = match &existing.controller {
            Some((_, uid)) if uid == self.set.owner.uid() => true,
            Some((name, _)) => {
                let controller = name.clone();
                return Err(ObjectError::Controlled { controller });
            }
            None => false,
        };
        let claim = match self.set.marks.read(&existing.marks) {
            Membership::Ours => Claim::Member,
            Membership::Former => Claim::Transfer,
            Membership::OfSibling { set } if self.has_wanted(&set, target) => {
                return Err(ObjectError::OfSibling { set });
            }
            Membership::OfSibling { .. } => Claim::Transfer,
            Membership::OfAnotherOperator { operator, set } => {
                return Err(ObjectError::OfAnotherSet { operator, set });
            }
            // A user may have copied an object with its labels, or removed them. The controller reference, which names
            // our owner, is more reliable.
            Membership::OfAnotherOwner { .. } | Membership::None if is_controlled => {
                Claim::Transfer
            }
            Membership::OfAnotherOwner { .. } if adopts => Claim::LeftOver,
            Membership::OfAnotherOwner { uid } => return Err(ObjectError::OfAnotherOwner { uid }),
            Membership::None if adopts => Claim::Transfer,
            Membership::None => return Err(ObjectError::NotAdopted),
        };
        if existing.is_deleting {
            // Checked last, so that an object of others is reported as such even while it is being deleted.
            return Err(ObjectError::Deleting);
        }
        Ok(claim)
    }

    /// Returns the state in which an object may be written, and the right to write it; `None` if it does not exist.
    pub(super) async fn claimed(
        &self,
        present: Present,
        target: &Target,
    ) -> Result<(Present, Option<Claim>), ObjectError> {
        let Some(existing) = &present.existing else {
            return Ok((present, None));
        };
        if self.claim(existing, target)? == Claim::Member {
            return Ok((present, Some(Claim::Member)));
        }
        let present = if present.live.is_some() {
            present
        } else {
            self.read_live(target).await?
        };
        let Some(existing) = &present.existing else {
            return Ok((present, None));
        };
        let claim = self.claim(existing, target)?;
        if claim == Claim::LeftOver {
            self.check_former_owner(existing).await?;
        }
        Ok((present, Some(claim)))
    }

    /// Returns whether labels are those of the set, under its present or a former name.
    pub(super) fn is_ours(&self, marks: &Found) -> bool {
        self.set.marks.is_member(marks)
    }

    /// Returns whether an object is of this owner already, by its labels or its controller.
    pub(super) fn is_of_owner(&self, existing: &Existing) -> bool {
        let membership = self.set.marks.read(&existing.marks);
        let controller = existing.controller.as_ref();
        let is_marked = matches!(
            membership,
            Membership::Ours | Membership::Former | Membership::OfSibling { .. }
        );
        is_marked || controller.is_some_and(|(_, uid)| uid == self.set.owner.uid())
    }

    /// Checks that the owner that an object names does not exist any more.
    ///
    /// The API server must answer that no object has its name, or one with another uid. Anything else is no proof: a
    /// kind that is not served, a read that is forbidden, no answer.
    async fn check_former_owner(&self, existing: &Existing) -> Result<(), ObjectError> {
        let uid = existing.marks.owner_uid().unwrap_or_default().to_owned();
        let Some(owner) = &existing.recorded else {
            return Err(ObjectError::OwnerUnrecorded { uid });
        };
        let unknown = |source: ObjectError| ObjectError::OwnerUnknown {
            owner: owner.to_string(),
            uid: uid.clone(),
            source: Box::new(source),
        };
        let resource = self.served(&owner.gvk).await.map_err(unknown)?;
        let endpoint = self.endpoint(&resource, &owner.key);
        match endpoint.metadata(owner.key.name()).await {
            Ok(Some(meta)) if meta.uid == uid => Err(ObjectError::OwnerExists {
                owner: owner.to_string(),
                uid,
            }),
            Ok(_) => Ok(()),
            Err(error) => Err(unknown(error)),
        }
    }

    /// Returns the resource of a kind, in another version if this one is no longer served.
    pub(super) async fn served(&self, gvk: &Gvk) -> Result<ResourceKind, ObjectError> {
        let mapper = self.set.operator.caches.clients().mapper();
        let served = self.set.memory.served_kinds(mapper).await?;
        let versions = || {
            let is_it = |kind: &&ResourceKind| {
                kind.gvk().group() == gvk.group() && kind.gvk().kind() == gvk.kind()
            };
            served.kinds.iter().filter(is_it)
        };
        let same = versions().find(|kind| kind.gvk() == gvk);
        match same.or_else(|| versions().next()) {
            Some(resource) => Ok(resource.clone()),
            // Discovery without the group's server does not list its kinds. They may be served all the same.
            None if served.is_unavailable(gvk) => Err(ObjectError::GroupUnanswered),
            None => Err(ObjectError::Unserved),
        }
    }
}
