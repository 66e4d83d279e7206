//! The files that a call of a service has got, by the numbers by which a script reads them.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bine_script::{HostError, Value};

use crate::arguments::Upload;

/// The files of one call.
#[derive(Debug, Default)]
pub(super) struct UploadSet(RefCell<Vec<(u64, Arc<Upload>)>>);

impl UploadSet {
    /// Keeps a file for the rest of the call. Returns what the words make an `Upload` of.
    pub(super) fn add(&self, upload: &Upload) -> Value {
        // A number is never used again, so that a script that keeps an `Upload` for too long never
        // gets the file of another visitor.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.0.borrow_mut().push((number, Arc::new(upload.clone())));
        Value::Object(vec![
            ("$upload".to_owned(), Value::Number(number as f64)),
            ("name".to_owned(), upload.file_name().into()),
            ("type".to_owned(), upload.media_type().into()),
            ("size".to_owned(), Value::Number(upload.length() as f64)),
        ])
    }

    /// The file with this number.
    ///
    /// # Errors
    ///
    /// It belongs to another call.
    pub(super) fn find(&self, number: f64) -> Result<Arc<Upload>, HostError> {
        let all = self.0.borrow();
        // Numbers are small, so each is exactly one float.
        let bits = number.to_bits();
        let found = all.iter().find(|(own, _)| (*own as f64).to_bits() == bits);
        found.map(|(_, upload)| Arc::clone(upload)).ok_or_else(|| {
            HostError::Other(
                "an `Upload` can be read only by the call of the service that got it: store its bytes, or save it".to_owned(),
            )
        })
    }
}
