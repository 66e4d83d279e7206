package auction;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.UUID;

/** Identifies users by a password, and for half an hour by a signed pass in their forms. */
final class Access {
    private static final long PASS_LASTS = 30 * 60;

    private final SecureRandom random = new SecureRandom();
    private final byte[] key = random(32);

    byte[] random(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    static boolean isRight(String password, Tables.User user) {
        return MessageDigest.isEqual(Tables.hashed(password, user.salt), user.password);
    }

    /** The user, the expiry, and a signature of both. */
    String pass(UUID user) {
        String claim = user + "." + (Tables.now() / Tables.SECOND + PASS_LASTS);
        return claim + "." + signature(claim);
    }

    /** The user of a pass, or {@code null} if it is not valid. */
    UUID bearer(String pass) {
        String[] parts = pass.split("\\.");
        if (parts.length != 3) {
            return null;
        }
        byte[] expected = signature(parts[0] + "." + parts[1]).getBytes(StandardCharsets.UTF_8);
        if (!MessageDigest.isEqual(expected, parts[2].getBytes(StandardCharsets.UTF_8))) {
            return null;
        }
        boolean isValid = Long.parseLong(parts[1]) > Tables.now() / Tables.SECOND;
        return isValid ? UUID.fromString(parts[0]) : null;
    }

    private String signature(String claim) {
        return HexFormat.of().formatHex(Tables.hashed(claim, key));
    }
}
