package auction;

/** A page that is written from its beginning to its end, with escaped values. */
final class Html {
    /** The suffix of the classes of the style sheet. */
    private final String suffix;
    private final StringBuilder text = new StringBuilder(4096);

    Html(String suffix) {
        this.suffix = suffix;
    }

    /** Adds markup. */
    Html raw(String markup) {
        text.append(markup);
        return this;
    }

    /** Adds an escaped text. */
    Html text(String value) {
        for (int at = 0; at < value.length(); at++) {
            char letter = value.charAt(at);
            switch (letter) {
                case '&' -> text.append("&amp;");
                case '<' -> text.append("&lt;");
                case '>' -> text.append("&gt;");
                case '"' -> text.append("&quot;");
                case '\'' -> text.append("&#39;");
                default -> text.append(letter);
            }
        }
        return this;
    }

    Html number(long value) {
        text.append(value);
        return this;
    }

    /** Adds an element with a class of the style sheet, without its end. */
    Html open(String element, String style) {
        return raw("<").raw(element).raw(" class=\"").raw(style).raw(suffix).raw("\">");
    }

    /** Adds a link. */
    Html link(String address, String value) {
        return raw("<a href=\"").text(address).raw("\">").text(value).raw("</a>");
    }

    @Override
    public String toString() {
        return text.toString();
    }
}
