import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;

/** Filters and masks JSON, as the transformation of transforms.py does: Kafka's own refuse the bytes of MirrorMaker 2. */
public class JsonMask implements Transformation<SourceRecord> {
  private final ObjectMapper mapper = new ObjectMapper();

  @Override
  public SourceRecord apply(SourceRecord record) {
    try {
      ObjectNode value = (ObjectNode) mapper.readTree((byte[]) record.value());
      if (value.get("country").asText().equals("US")) {
        return null;
      }
      MessageDigest sha = MessageDigest.getInstance("SHA-256");
      byte[] user = ("salt" + value.get("user").asText()).getBytes(StandardCharsets.UTF_8);
      value.put("user", HexFormat.of().formatHex(sha.digest(user)));
      value.put("email", value.get("email").asText().replaceAll("^[^@]+", "***"));
      byte[] made = mapper.writeValueAsBytes(value);
      return record.newRecord(record.topic(), record.kafkaPartition(), record.keySchema(), record.key(),
          record.valueSchema(), made, record.timestamp());
    } catch (Exception error) {
      throw new RuntimeException(error);
    }
  }

  @Override
  public ConfigDef config() {
    return new ConfigDef();
  }

  @Override
  public void configure(Map<String, ?> settings) {}

  @Override
  public void close() {}
}
