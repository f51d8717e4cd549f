//! What `lockstock run --json` said.

use std::process::ExitStatus;

use lab::report::{Report, RunReport};
use lab::site::Links;
use lab::verdict::Verdict;

/// One run.
pub(crate) struct Run(RunReport);

impl Run {
    pub(crate) fn read(status: ExitStatus, stdout: &[u8]) -> Self {
        let report: Report = serde_json::from_slice(stdout).unwrap_or_else(|error| {
            panic!("{status}, {error} in stdout:\n{}", String::from_utf8_lossy(stdout))
        });
        let [run] = <[RunReport; 1]>::try_from(report.runs).expect("one run");
        assert_eq!(
            status.code(),
            Some(i32::from(report.verdict.exit().code())),
            "the exit status says what the report does"
        );
        Self(run)
    }

    /// The audit says valid, and each fault showed while there was something to sell.
    pub(crate) fn expect_valid_and_struck(&self, faults: &[&str]) {
        let run = &self.0;
        let confirmed = run.faults.iter().filter(|fault| fault.confirmed);
        let struck: Vec<&str> = confirmed.map(|fault| fault.kind.as_str()).collect();
        assert_eq!(struck, faults, "{:#?}", run.faults);
        assert_eq!(run.verdict, Verdict::Valid, "{:#?}\n{:#?}", run.reasons, run.audit);
    }

    pub(crate) fn fenced_writes(&self) -> usize {
        self.0.fenced_writes.len()
    }

    pub(crate) fn links(&self) -> &Links {
        self.0.links.as_ref().expect("a compose stack has pages")
    }
}
