//! Status codes for rejected commands and subscriptions.

use bine_http::Status;
use bine_push::Refused;

/// The status code for a rejection.
pub(crate) const fn status_of(refused: &Refused) -> Status {
    match refused {
        Refused::NotFound(_) => Status::NOT_FOUND,
        Refused::Removed
        | Refused::Gone(_)
        | Refused::TooOld { .. }
        | Refused::ForeignEpoch { .. }
        | Refused::Ahead { .. } => Status::GONE,
        Refused::Closed { .. }
        | Refused::Conflict(_)
        | Refused::ContentType(_)
        | Refused::SequenceGap { .. }
        | Refused::OutOfOrder => Status::CONFLICT,
        Refused::StaleEpoch { .. } => Status::FORBIDDEN,
        Refused::LimitExceeded { .. } => Status::CONTENT_TOO_LARGE,
        Refused::QuotaExceeded { .. } => Status::INSUFFICIENT_STORAGE,
        Refused::Empty(_) | Refused::Malformed(_) | Refused::EpochStart | Refused::OneChannel => {
            Status::BAD_REQUEST
        }
        Refused::Record { .. } => Status::INTERNAL_SERVER_ERROR,
    }
}
