<%@ page contentType="text/html; charset=utf-8" session="false" trimDirectiveWhitespaces="true" %><%!
static final String[][] DUTIES = {
    {"Roads & bridges", "Ann"}, {"Water", "Bob O'Neill"}, {"Light", "Cecilia"}, {"Post < 2 kg", "Dora"},
    {"Telegraph", "Emil \"Em\" Berg"}, {"Harbor", "Frida"}, {"Forests", "Gustav"}, {"Schools", "Hanna"},
    {"Archive & library", "Ivar"}, {"Fire", "Jo"}};

static String escape(String text) {
    StringBuilder out = new StringBuilder(text.length() + 16);
    for (int at = 0; at < text.length(); at++) {
        char letter = text.charAt(at);
        switch (letter) {
            case '&': out.append("&amp;"); break;
            case '<': out.append("&lt;"); break;
            case '>': out.append("&gt;"); break;
            case '"': out.append("&quot;"); break;
            case '\'': out.append("&#39;"); break;
            default: out.append(letter);
        }
    }
    return out.toString();
}
%><h1>On duty</h1><p>Whom to call this week, and for what. A name that is missing here has the week off.</p><table><tr><th>Team</th><th>Person</th></tr><% for (String[] duty : DUTIES) { %><tr><td class="team"><%= escape(duty[0]) %></td><td class="person"><%= escape(duty[1]) %></td></tr><% } %></table><p>If nobody answers within ten minutes, call the next one on this list; it goes round from the top.</p>