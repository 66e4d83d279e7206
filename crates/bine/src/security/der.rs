//! A reader of DER (X.690), as far as certificates need it.

/// The remaining elements of a sequence.
pub(crate) struct DerElements<'b>(pub(crate) &'b [u8]);

impl<'b> DerElements<'b> {
    /// The content of the next element, which must be of this kind.
    pub(crate) fn content(&mut self, kind: u8) -> Option<&'b [u8]> {
        self.next().filter(|(found, _)| *found == kind).map(|(_, content)| content)
    }
}

impl<'b> Iterator for DerElements<'b> {
    type Item = (u8, &'b [u8]);

    /// The kind and the content of the next element. Lengths of up to three bytes are supported.
    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.0.split_first()?;
        let (&short, rest) = rest.split_first()?;
        let (length, rest) = match short {
            0..=0x7f => (usize::from(short), rest),
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(short & 3))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((kind, content))
    }
}
