//! The conversion between the versions of a kind, through a hub.

use std::error::Error;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};

use lariat_core::{Gvk, comparable, compare_fields, without_credentials};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ConversionError;
use super::metadata;
use super::version::{StepError, Version};
use crate::admission::message;

/// The conversion between the versions of a kind, through one of them: the hub.
///
/// The hub must be a version that can represent every field of the others, such as the stored one. Each other version
/// is converted to the hub and from it. So there are two functions for each version, however many versions there are.
///
/// ```
/// use lariat::webhook::Conversion;
/// # mod v1 {
/// #     use kube::CustomResource;
/// #     use schemars::JsonSchema;
/// #     use serde::{Deserialize, Serialize};
/// #     #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
/// #     #[kube(group = "demo.dev", version = "v1", kind = "Widget", namespaced)]
/// #     pub struct WidgetSpec { pub size: i64 }
/// # }
/// # mod v2 {
/// #     use kube::CustomResource;
/// #     use schemars::JsonSchema;
/// #     use serde::{Deserialize, Serialize};
/// #     #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
/// #     #[kube(group = "demo.dev", version = "v2", kind = "Widget", namespaced)]
/// #     pub struct WidgetSpec { pub width: i64 }
/// # }
///
/// impl From<v1::Widget> for v2::Widget {
///     fn from(old: v1::Widget) -> Self {
///         let spec = v2::WidgetSpec { width: old.spec.size };
///         Self { metadata: old.metadata, spec }
///     }
/// }
/// impl From<v2::Widget> for v1::Widget {
///     fn from(new: v2::Widget) -> Self {
///         let spec = v1::WidgetSpec { size: new.spec.width };
///         Self { metadata: new.metadata, spec }
///     }
/// }
///
/// let conversion = Conversion::<v2::Widget>::hub().version::<v1::Widget>();
/// let old = v1::Widget::new("a", v1::WidgetSpec { size: 3 });
/// conversion.check_round_trip(&old)?;
/// # Ok::<(), lariat::webhook::ConversionError>(())
/// ```
#[must_use = "a conversion does nothing until webhooks have it"]
pub struct Conversion<H> {
    /// The versions; the first one is the hub.
    versions: Vec<Version<H>>,
    plural: String,
}

impl<H> Conversion<H>
where
    H: kube::Resource<DynamicType = ()> + DeserializeOwned + Serialize + Send + Sync + 'static,
{
    /// Creates a conversion through a hub, which is its first version.
    pub fn hub() -> Self {
        let hub = Version::new(gvk_of::<H>(), Ok::<H, String>, Ok::<H, String>);
        Self {
            versions: vec![hub],
            plural: H::plural(&()).into_owned(),
        }
    }

    /// Adds a version that is converted by `From` or `TryFrom` in both directions.
    ///
    /// It replaces an earlier one of the same version.
    pub fn version<V>(self) -> Self
    where
        V: kube::Resource<DynamicType = ()> + DeserializeOwned + Serialize + TryFrom<H> + 'static,
        H: TryFrom<V>,
        <V as TryFrom<H>>::Error: Into<Box<dyn Error + Send + Sync>>,
        <H as TryFrom<V>>::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        self.version_with(|version: V| H::try_from(version), |hub: H| V::try_from(hub))
    }

    /// Adds a version with its functions to the hub and from it.
    ///
    /// It replaces an earlier one of the same version.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::autoscaling::{v1, v2};
    /// use lariat::webhook::Conversion;
    ///
    /// # fn up(old: v1::HorizontalPodAutoscaler) -> Result<v2::HorizontalPodAutoscaler, String> { Err(String::new()) }
    /// # fn down(new: v2::HorizontalPodAutoscaler) -> Result<v1::HorizontalPodAutoscaler, String> { Err(String::new()) }
    /// let conversion = Conversion::<v2::HorizontalPodAutoscaler>::hub()
    ///     .version_with::<v1::HorizontalPodAutoscaler, _, _>(up, down);
    /// # let _ = conversion;
    /// ```
    pub fn version_with<V, ToError, FromError>(
        mut self,
        to_hub: impl Fn(V) -> Result<H, ToError> + Send + Sync + 'static,
        from_hub: impl Fn(H) -> Result<V, FromError> + Send + Sync + 'static,
    ) -> Self
    where
        V: kube::Resource<DynamicType = ()> + DeserializeOwned + Serialize + 'static,
        ToError: Into<Box<dyn Error + Send + Sync>>,
        FromError: Into<Box<dyn Error + Send + Sync>>,
    {
        let version = Version::new(gvk_of::<V>(), to_hub, from_hub);
        self.versions.retain(|each| each.gvk != version.gvk);
        self.versions.push(version);
        self
    }

    /// Checks that an object survives the conversion to each version and back.
    ///
    /// Use it in tests, with objects that use every field; see [`Conversion`] for an example.
    ///
    /// # Errors
    ///
    /// [`ConversionError::Lossy`] with the fields that differ, or the error of a conversion or of the serialization.
    pub fn check_round_trip<V>(&self, object: &V) -> Result<(), ConversionError>
    where
        V: kube::Resource<DynamicType = ()> + Serialize,
    {
        let gvk = gvk_of::<V>();
        let from = gvk.api_version();
        let mut object = serde_json::to_value(object).map_err(|source| {
            let (namespace, name) = (
                object.meta().namespace.as_deref(),
                object.meta().name.as_deref(),
            );
            let key = metadata::joined(namespace.unwrap_or_default(), name.unwrap_or_default());
            ConversionError::Unserializable {
                key,
                from: from.clone(),
                source,
            }
        })?;
        object["apiVersion"] = from.clone().into();
        object["kind"] = gvk.kind().into();
        for version in &self.versions {
            let to = version.gvk.api_version();
            let back = self.convert(&self.convert(&object, &to)?, &from)?;
            let mut fields = Vec::new();
            let [old, new] = [&object, &back].map(|object| comparable(object, &[]));
            compare_fields(&old, &new, |path, _, _| fields.push(path.to_owned()));
            if !fields.is_empty() {
                return Err(ConversionError::Lossy {
                    key: metadata::key(&object),
                    from,
                    to,
                    fields,
                });
            }
        }
        Ok(())
    }

    /// Converts an object to another version, given as `group/version`.
    ///
    /// Metadata other than labels and annotations is copied from the object.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
    /// use lariat::webhook::{Conversion, ConversionError};
    /// use serde_json::json;
    ///
    /// # fn example(conversion: Conversion<HorizontalPodAutoscaler>) -> Result<(), ConversionError> {
    /// let old = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}});
    /// let new = conversion.convert(&old, "autoscaling/v2")?;
    /// assert_eq!(new["apiVersion"], "autoscaling/v2");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The kind or a version is unknown, or a function has failed, has panicked or has changed metadata.
    pub fn convert(&self, object: &Value, to: &str) -> Result<Value, ConversionError> {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        if object["kind"] != *self.kind() {
            return Err(ConversionError::OtherKind {
                key: metadata::key(object),
                kind: self.kind().to_owned(),
                found: object["kind"].as_str().unwrap_or_default().to_owned(),
            });
        }
        let (source, target) = (self.find(object, from)?, self.find(object, to)?);
        // Not converted at all, so that fields which the type does not know survive.
        if source.gvk == target.gvk {
            return Ok(object.clone());
        }
        // A panic of a user's function must not end the connection without an answer.
        let key = metadata::key(object);
        let steps = || -> Result<(Value, Value), StepError> {
            let as_hub = (source.to_hub)(object, &source.gvk)?;
            Ok((as_hub.typed, (target.from_hub)(as_hub.hub)?))
        };
        let stepped = panic::catch_unwind(AssertUnwindSafe(steps)).map_err(|panic| {
            let text = without_credentials(message(&*panic));
            tracing::error!(key, from, to, "a conversion panicked: {text}");
            ConversionError::Panicked {
                key: key.clone(),
                from: from.to_owned(),
                to: to.to_owned(),
            }
        })?;
        let (typed, mut converted) = stepped.map_err(|error| error.into_error(&key, from, to))?;
        // Compared with the object as its own type writes it: fields that the type does not know are not a change of
        // the conversion.
        let merged = metadata::merged(object, &typed, &converted);
        converted["metadata"] = merged.map_err(|field| ConversionError::ChangedMetadata {
            key,
            to: to.to_owned(),
            field,
        })?;
        converted["apiVersion"] = to.into();
        converted["kind"] = self.kind().into();
        Ok(converted)
    }

    fn find(&self, object: &Value, api_version: &str) -> Result<&Version<H>, ConversionError> {
        let mut versions = self.versions.iter();
        let found = versions.find(|version| version.gvk.api_version() == api_version);
        found.ok_or_else(|| {
            let known = self.versions.iter().map(|version| version.gvk.version());
            ConversionError::UnknownVersion {
                key: metadata::key(object),
                kind: self.kind().to_owned(),
                api_version: api_version.to_owned(),
                known: known.collect::<Vec<_>>().join(", "),
            }
        })
    }

    fn kind(&self) -> &str {
        self.versions[0].gvk.kind()
    }

    /// Returns the name of the CRD.
    pub(crate) fn definition(&self) -> String {
        format!("{}.{}", self.plural, self.versions[0].gvk.group())
    }
}

fn gvk_of<K: kube::Resource<DynamicType = ()>>() -> Gvk {
    Gvk::new(&K::group(&()), &K::version(&()), &K::kind(&()))
}

impl<H> fmt::Debug for Conversion<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions = self.versions.iter().map(|version| &version.gvk);
        f.debug_list().entries(versions).finish()
    }
}
