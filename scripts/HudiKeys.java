import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.Optional;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hudi.common.config.ConfigProperty;

/**
 * Prints every option that the classes of a Hudi bundle declare, one per line: kind, key, default, alternatives,
 * whether it is deprecated; separated by tabs. Run by scripts/hudi_keys.py, which keeps what it prints.
 */
public final class HudiKeys {
  /** Keys that Hudi declares as plain texts; file names and prefixes have another form. */
  private static final Pattern KEY = Pattern.compile("hoodie(\\.[a-z_]+){2,}");

  public static void main(String[] arguments) throws Exception {
    for (String name : classes(arguments[0])) {
      try {
        print(Class.forName(name, false, HudiKeys.class.getClassLoader()));
      } catch (LinkageError absent) {
        // Classes for libraries that are not on the class path (Lance, RabbitMQ) declare no options.
        System.err.println("skipped " + name + ": " + absent);
      }
    }
  }

  private static List<String> classes(String jarPath) throws Exception {
    try (JarFile jar = new JarFile(jarPath)) {
      return jar.stream()
          .map(JarEntry::getName)
          .filter(name -> name.startsWith("org/apache/hudi/") && name.endsWith(".class"))
          .map(name -> name.substring(0, name.length() - ".class".length()).replace('/', '.'))
          .sorted()
          .collect(Collectors.toList());
    }
  }

  private static void print(Class<?> owner) throws Exception {
    for (Field field : owner.getDeclaredFields()) {
      boolean isStatic = Modifier.isStatic(field.getModifiers());
      if (field.getType() == ConfigProperty.class && (isStatic || owner.getName().endsWith("$"))) {
        print((ConfigProperty<?>) value(field, isStatic ? null : module(owner)));
      } else if (field.getType() == String.class && isStatic && Modifier.isFinal(field.getModifiers())) {
        Object text = value(field, null);
        if (text != null && KEY.matcher((String) text).matches()) {
          System.out.println("text\t" + text + "\t\t\t");
        }
      }
    }
  }

  private static void print(ConfigProperty<?> property) {
    if (property != null) {
      String byDefault = property.hasDefaultValue() ? String.valueOf(property.defaultValue()) : "";
      String alternatives = String.join(" ", property.getAlternatives());
      Optional<?> deprecated = Optional.ofNullable(property.getDeprecatedVersion().orElse(null));
      System.out.println(String.join("\t", "option", property.key(), byDefault.replaceAll("\\s+", " "), alternatives,
          deprecated.isPresent() ? "yes" : ""));
    }
  }

  private static Object module(Class<?> owner) throws Exception {
    return value(owner.getDeclaredField("MODULE$"), null);
  }

  private static Object value(Field field, Object holder) throws Exception {
    field.setAccessible(true);
    return field.get(holder);
  }
}
