//! The types that a console can observe.

use lariat_controller::SharedControllerFactory;
#[cfg(feature = "operator")]
use lariat_operator::Operator;

use crate::members::Members;

/// A type that a console can observe.
///
/// It is implemented by `SharedControllerFactory`, and with the feature `operator` by `Operator`. The trait is sealed.
pub trait Observed: sealed::Join {}

pub(crate) mod sealed {
    use super::Members;

    pub trait Join {
        /// Adds the factory under a context id.
        ///
        /// An operator sets the name of the program, unless it is set.
        #[allow(private_interfaces, reason = "the trait is sealed by it")]
        fn join(&self, context: &str, members: &Members, name: &mut Option<String>);
    }
}

impl Observed for SharedControllerFactory {}

impl sealed::Join for SharedControllerFactory {
    #[allow(private_interfaces, reason = "the trait is sealed by it")]
    fn join(&self, context: &str, members: &Members, _: &mut Option<String>) {
        members.add(context, self);
    }
}

#[cfg(feature = "operator")]
impl Observed for Operator {}

#[cfg(feature = "operator")]
impl sealed::Join for Operator {
    #[allow(private_interfaces, reason = "the trait is sealed by it")]
    fn join(&self, context: &str, members: &Members, name: &mut Option<String>) {
        members.add(context, self.factory());
        members.add_operator(context, self.downgrade());
        name.get_or_insert_with(|| self.name().to_owned());
    }
}
