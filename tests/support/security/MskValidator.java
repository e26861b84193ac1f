package strait.tests;

import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.*;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.*;

/** Checks tokens of AWS's signer as Amazon MSK does: a presigned URL for kafka-cluster:Connect, signed with the one secret. */
public class MskValidator implements AuthenticateCallbackHandler {
    public void configure(Map configs, String mechanism, List entries) {}

    public void close() {}

    public void handle(Callback[] callbacks) {
        for (int at = 0; at < callbacks.length; at++) {
            if (callbacks[at] instanceof OAuthBearerValidatorCallback) {
                check((OAuthBearerValidatorCallback) callbacks[at]);
            } else if (callbacks[at] instanceof OAuthBearerExtensionsValidatorCallback) {
                OAuthBearerExtensionsValidatorCallback sent = (OAuthBearerExtensionsValidatorCallback) callbacks[at];
                for (Iterator names = sent.inputExtensions().map().keySet().iterator(); names.hasNext(); ) {
                    sent.valid((String) names.next());
                }
            }
        }
    }

    private void check(OAuthBearerValidatorCallback callback) {
        try {
            String url = new String(Base64.getUrlDecoder().decode(callback.tokenValue()), StandardCharsets.UTF_8);
            long expires = verified(URI.create(url));
            callback.token(new Token(callback.tokenValue(), expires));
        } catch (Exception wrong) {
            callback.error("invalid_token", null, null);
        }
    }

    private static long verified(URI url) throws Exception {
        String given = null, date = null, scope = null, life = null, action = null;
        TreeSet signed = new TreeSet();
        String[] pairs = url.getRawQuery().split("&");
        for (int at = 0; at < pairs.length; at++) {
            int equals = pairs[at].indexOf('=');
            String name = pairs[at].substring(0, equals);
            String value = URLDecoder.decode(pairs[at].substring(equals + 1), "UTF-8");
            if (name.equals("X-Amz-Signature")) given = value;
            else if (!name.equals("User-Agent")) signed.add(pairs[at]);
            if (name.equals("X-Amz-Date")) date = value;
            if (name.equals("X-Amz-Credential")) scope = value.substring(value.indexOf('/') + 1);
            if (name.equals("X-Amz-Expires")) life = value;
            if (name.equals("Action")) action = value;
        }
        if (!"kafka-cluster:Connect".equals(action)) throw new SecurityException("another action");
        StringBuffer query = new StringBuffer();
        for (Iterator each = signed.iterator(); each.hasNext(); ) query.append(query.length() > 0 ? "&" : "").append(each.next());
        String request = "GET\n/\n" + query + "\nhost:" + url.getHost() + "\n\nhost\n" + hex(sha256(""));
        String toSign = "AWS4-HMAC-SHA256\n" + date + "\n" + scope + "\n" + hex(sha256(request));
        byte[] key = ("AWS4" + System.getProperty("strait.tests.aws.secret")).getBytes("UTF-8");
        String[] parts = scope.split("/");
        for (int at = 0; at < parts.length; at++) key = hmac(key, parts[at]);
        if (!hex(hmac(key, toSign)).equals(given)) throw new SecurityException("another secret");
        java.text.SimpleDateFormat format = new java.text.SimpleDateFormat("yyyyMMdd'T'HHmmss'Z'");
        format.setTimeZone(TimeZone.getTimeZone("UTC"));
        long expires = format.parse(date).getTime() + Long.parseLong(life) * 1000;
        if (expires < System.currentTimeMillis()) throw new SecurityException("expired");
        return expires;
    }

    private static byte[] sha256(String text) throws Exception {
        return MessageDigest.getInstance("SHA-256").digest(text.getBytes("UTF-8"));
    }

    private static byte[] hmac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes("UTF-8"));
    }

    private static String hex(byte[] bytes) {
        StringBuffer text = new StringBuffer();
        for (int at = 0; at < bytes.length; at++) text.append(String.format("%02x", new Object[] {Byte.valueOf(bytes[at])}));
        return text.toString();
    }

    public static class Token implements OAuthBearerToken {
        private final String value;
        private final long expires;

        public Token(String value, long expires) {
            this.value = value;
            this.expires = expires;
        }

        public String value() { return value; }
        public Set scope() { return Collections.EMPTY_SET; }
        public long lifetimeMs() { return expires; }
        public String principalName() { return "copier"; }
        public Long startTimeMs() { return null; }
    }
}
