//! The twin of `crds` without the feature `crd`: nothing is installed.

use super::lifecycle::OperatorError;
use super::operator::Operator;
use crate::needs::Rule;

impl Operator {
    pub(super) async fn install(&self) -> Result<(), OperatorError> {
        Ok(())
    }

    pub(super) fn crd_rules(&self) -> Vec<Rule> {
        Vec::new()
    }
}
