//! Database spans with the stable names of the OpenTelemetry conventions.

/// A client span for one statement: `db_span!("UPDATE", "stock")` or `db_span!("COMMIT")`.
macro_rules! db_span {
    ($operation:literal, $collection:literal) => {
        tracing::info_span!(
            "db.query",
            otel.name = concat!($operation, " ", $collection),
            otel.kind = "client",
            db.system.name = "postgresql",
            db.operation.name = $operation,
            db.collection.name = $collection,
            db.query.summary = concat!($operation, " ", $collection),
        )
    };
    ($operation:literal) => {
        tracing::info_span!(
            "db.query",
            otel.name = $operation,
            otel.kind = "client",
            db.system.name = "postgresql",
            db.operation.name = $operation,
            db.query.summary = $operation,
        )
    };
}

pub(super) use db_span;
